// Hookdeck signs the body alone; a header names the event.
import { verifyWebhookSignature } from '@hookdeck/sdk/webhooks/helpers.js';
import { hmac } from '../signing.mjs';

export default {
  provider: 'hookdeck',
  sdk: '@hookdeck/sdk',
  secret: 'conformance hookdeck',
  otherSecret: 'conformance other',
  timestamped: false,
  signatureHeader: 'x-hookdeck-signature',

  async deliver({ id, secret }) {
    const body = JSON.stringify({ order: 1, note: 'Grüße' });
    return {
      body,
      headers: {
        'content-type': 'application/json',
        'x-hookdeck-eventid': id,
        'x-hookdeck-verified': 'true',
        'x-hookdeck-signature': hmac('sha256', secret, body, 'base64'),
      },
    };
  },

  async verify({ headers, body }, secret) {
    const { isValidSignature } = await verifyWebhookSignature({ headers, rawBody: body, signingSecret: secret });
    return isValidSignature;
  },
};
