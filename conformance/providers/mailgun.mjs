// Mailgun signs a timestamp and a token, both in the body, not the body; its package in Go verifies.
import { goVerify, goVersion } from '../go-sdk.mjs';
import { hmac, seconds } from '../signing.mjs';

const sdk = 'github.com/mailgun/mailgun-go/v4';

export default {
  provider: 'mailgun',
  sdk,
  version: goVersion(sdk),
  secret: 'conformance mailgun',
  otherSecret: 'conformance other',
  timestamped: true,

  async deliver({ id, secret, at }) {
    const [timestamp, token] = [seconds(at), 'conformance token'];
    const signature = { timestamp, token, signature: hmac('sha256', secret, timestamp + token, 'hex') };
    return {
      body: JSON.stringify({ signature, 'event-data': { id, event: 'delivered', subject: 'Grüße' } }),
      headers: { 'content-type': 'application/json' },
    };
  },

  // What is signed, that is: the token.
  tamper: ({ headers, body }) => ({ headers, body: body.replace('conformance token', 'conformance tokem') }),

  editSignature({ headers, body }, change) {
    const { signature, ...rest } = JSON.parse(body);
    return { headers, body: JSON.stringify({ signature: { ...signature, signature: change(signature.signature) }, ...rest }) };
  },

  verify: goVerify('mailgun'),
};
