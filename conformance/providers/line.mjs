// LINE delivers batches, whose elements have IDs; the body alone is signed.
import { validateSignature } from '@line/bot-sdk';
import { hmac } from '../signing.mjs';

export default {
  provider: 'line',
  sdk: '@line/bot-sdk',
  secret: 'conformance line',
  otherSecret: 'conformance other',
  timestamped: false,
  signatureHeader: 'x-line-signature',

  async deliver({ id, secret }) {
    const event = { type: 'message', webhookEventId: id, deliveryContext: { isRedelivery: false }, message: { type: 'text', text: 'こんにちは' } };
    const body = JSON.stringify({ destination: 'U1', events: [event] });
    return { body, headers: { 'content-type': 'application/json', 'x-line-signature': hmac('sha256', secret, body, 'base64') } };
  },

  verify: async ({ headers, body }, secret) => validateSignature(body, secret, headers['x-line-signature']),
};
