// Shopify's newer events: the same headers without X-, and another ID.
import { sign, validate } from '../shopify-app.mjs';
import shopify from './shopify.mjs';

export default {
  ...shopify,
  variant: 'events',
  signatureHeader: 'shopify-hmac-sha256',

  async deliver({ id, secret }) {
    const body = JSON.stringify({ topic: 'Product', action: 'update', handle: 'conformance', fields_changed: ['title'], note: 'Grüße' });
    return {
      body,
      headers: {
        'content-type': 'application/json',
        'shopify-topic': 'Product',
        'shopify-action': 'update',
        'shopify-handle': 'conformance',
        'shopify-shop-domain': 'conformance.myshopify.com',
        'shopify-api-version': '2026-10',
        'shopify-webhook-id': id,
        'shopify-event-id': '98880550-7158-44d4-b7cd-2c97c8a091b5',
        'shopify-triggered-at': new Date().toISOString(),
        'shopify-hmac-sha256': sign(secret, body),
      },
    };
  },

  verify: validate,
};
