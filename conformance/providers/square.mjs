// Square signs the URL that was registered, then the body.
import { WebhooksHelper } from 'square';
import { hmac } from '../signing.mjs';

const publicURL = 'https://hooks.example.com';
const url = publicURL + '/square';

export default {
  provider: 'square',
  sdk: 'square',
  secret: 'conformance square',
  otherSecret: 'conformance other',
  publicURL,
  timestamped: false,
  signatureHeader: 'x-square-hmacsha256-signature',

  async deliver({ id, secret }) {
    const body = JSON.stringify({ merchant_id: 'M1', type: 'payment.updated', event_id: id, data: { note: 'Grüße' } });
    return {
      body,
      headers: { 'content-type': 'application/json', 'x-square-hmacsha256-signature': hmac('sha256', secret, url + body, 'base64') },
    };
  },

  verify: ({ headers, body }, secret) => WebhooksHelper.verifySignature({
    requestBody: body, signatureHeader: headers['x-square-hmacsha256-signature'], signatureKey: secret, notificationUrl: url,
  }),
};
