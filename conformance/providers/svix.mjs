// Svix signs as Standard Webhooks does, under headers of its own.
import { Webhook } from 'svix';

export default {
  provider: 'svix',
  sdk: 'svix',
  secret: 'whsec_' + Buffer.from('conformance svix, 24 bytes').toString('base64'),
  otherSecret: 'whsec_' + Buffer.from('conformance of somebody else!').toString('base64'),
  timestamped: true,
  signatureHeader: 'svix-signature',

  async deliver({ id, secret, at }) {
    const body = JSON.stringify({ type: 'invoice.paid', data: { id: 'in_1', name: 'Grüße' } });
    return {
      body,
      headers: {
        'content-type': 'application/json',
        'svix-id': id,
        'svix-timestamp': String(Math.floor(at / 1000)),
        'svix-signature': new Webhook(secret).sign(id, new Date(at), body),
      },
    };
  },

  async verify({ headers, body }, secret) {
    new Webhook(secret).verify(body, headers);
    return true;
  },
};
