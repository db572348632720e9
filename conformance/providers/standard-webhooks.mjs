// Standard Webhooks signs "id.timestamp.body" with a base64 key.
import { Webhook } from 'standardwebhooks';

export default {
  provider: 'standard-webhooks',
  sdk: 'standardwebhooks',
  secret: 'whsec_' + Buffer.from('conformance standard webhooks').toString('base64'),
  otherSecret: 'whsec_' + Buffer.from('conformance of somebody else!').toString('base64'),
  timestamped: true,
  signatureHeader: 'webhook-signature',

  async deliver({ id, secret, at }) {
    const body = JSON.stringify({ type: 'user.created', timestamp: new Date(at).toISOString(), data: { name: 'Grüße' } });
    return {
      body,
      headers: {
        'content-type': 'application/json',
        'webhook-id': id,
        'webhook-timestamp': String(Math.floor(at / 1000)),
        'webhook-signature': new Webhook(secret).sign(id, new Date(at), body),
      },
    };
  },

  async verify({ headers, body }, secret) {
    new Webhook(secret).verify(body, headers);
    return true;
  },
};
