// Shopify's webhooks: headers that begin with X-Shopify-.
import { sign, validate } from '../shopify-app.mjs';

export default {
  provider: 'shopify',
  sdk: '@shopify/shopify-api',
  secret: 'conformance shopify',
  otherSecret: 'conformance other',
  timestamped: false,
  signatureHeader: 'x-shopify-hmac-sha256',

  async deliver({ id, secret }) {
    const body = JSON.stringify({ id: 820982911946154508, email: 'jon@example.com', note: 'Grüße' });
    return {
      body,
      headers: {
        'content-type': 'application/json',
        'x-shopify-topic': 'orders/create',
        'x-shopify-shop-domain': 'conformance.myshopify.com',
        'x-shopify-api-version': '2026-10',
        'x-shopify-webhook-id': 'b54557e4-bdd9-4b37-8a5f-bf7d70bcd043',
        'x-shopify-event-id': id,
        'x-shopify-triggered-at': new Date().toISOString(),
        'x-shopify-hmac-sha256': sign(secret, body),
      },
    };
  },

  verify: validate,
};
