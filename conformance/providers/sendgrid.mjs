// SendGrid signs "timestamp" + "body" with ECDSA; the body is a batch that ends with a line break.
import { generateKeyPairSync, sign } from 'node:crypto';
import sendgrid from '@sendgrid/eventwebhook';
import { seconds } from '../signing.mjs';

const webhook = new sendgrid.EventWebhook();
const keys = new Map();

// The secret is the public key in base64, as SendGrid's settings show it.
function publicKey() {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  const secret = publicKey.export({ format: 'der', type: 'spki' }).toString('base64');
  keys.set(secret, privateKey);
  return secret;
}

export default {
  provider: 'sendgrid',
  sdk: '@sendgrid/eventwebhook',
  secret: publicKey(),
  otherSecret: publicKey(),
  timestamped: true,
  toleranceMinutes: 10, // SendGrid names none
  signatureHeader: 'x-twilio-email-event-webhook-signature',

  async deliver({ id, secret, at }) {
    const body = JSON.stringify([{ email: 'jon@example.com', event: 'delivered', sg_event_id: id, response: 'Grüße' }]) + '\r\n';
    return {
      body,
      headers: {
        'content-type': 'application/json',
        'x-twilio-email-event-webhook-timestamp': seconds(at),
        'x-twilio-email-event-webhook-signature': sign('sha256', Buffer.from(seconds(at) + body), keys.get(secret)).toString('base64'),
      },
    };
  },

  verify: async ({ headers, body }, secret) => webhook.verifySignature(
    webhook.convertPublicKeyToECDSA(secret), body,
    headers['x-twilio-email-event-webhook-signature'], headers['x-twilio-email-event-webhook-timestamp'],
  ),
};
