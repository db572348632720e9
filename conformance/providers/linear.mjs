// Linear signs the body, in which its time stands.
import { LinearWebhookClient } from '@linear/sdk/webhooks';
import { hmac } from '../signing.mjs';

export default {
  provider: 'linear',
  sdk: '@linear/sdk',
  secret: 'conformance linear',
  otherSecret: 'conformance other',
  timestamped: true,
  signatureHeader: 'linear-signature',

  async deliver({ id, secret, at }) {
    const body = JSON.stringify({ action: 'update', type: 'Issue', data: { id: 'i1', title: 'Grüße' }, organizationId: 'o1', webhookTimestamp: at });
    return {
      body,
      headers: {
        'content-type': 'application/json; charset=utf-8',
        'linear-delivery': id,
        'linear-event': 'Issue',
        'linear-signature': hmac('sha256', secret, body, 'hex'),
      },
    };
  },

  verify: async ({ headers, body }, secret) =>
    new LinearWebhookClient(secret).verify(Buffer.from(body), headers['linear-signature'], JSON.parse(body).webhookTimestamp),
};
