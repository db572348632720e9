// Discord signs "timestamp" + "body" with Ed25519; the secret is the public key, which the SDK verifies with.
import { createHash, createPrivateKey, createPublicKey, sign } from 'node:crypto';
import { verifyKey } from 'discord-interactions';
import { seconds } from '../signing.mjs';

// The private key that belongs to a public one, made from a name.
const keys = new Map();

function publicKey(name) {
  const seed = createHash('sha256').update(name).digest();
  const key = createPrivateKey({ key: Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), seed]), format: 'der', type: 'pkcs8' });
  const hex = createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(-32).toString('hex');
  keys.set(hex, key);
  return hex;
}

export default {
  provider: 'discord',
  sdk: 'discord-interactions',
  secret: publicKey('conformance discord'),
  otherSecret: publicKey('conformance other'),
  timestamped: true,
  toleranceMinutes: 15, // Discord names none
  signatureHeader: 'x-signature-ed25519',

  async deliver({ id, secret, at }) {
    const body = JSON.stringify({ id, type: 2, token: 't', application_id: '1', data: { name: 'Grüße' } });
    const timestamp = seconds(at);
    return {
      body,
      headers: {
        'content-type': 'application/json',
        'x-signature-timestamp': timestamp,
        'x-signature-ed25519': sign(null, Buffer.from(timestamp + body), keys.get(secret)).toString('hex'),
      },
    };
  },

  verify: ({ headers, body }, secret) => verifyKey(body, headers['x-signature-ed25519'], headers['x-signature-timestamp'], secret),
};
