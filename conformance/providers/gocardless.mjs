// GoCardless delivers batches, whose elements have IDs; the body alone is signed.
import { verifySignature } from 'gocardless-nodejs';
import { hmac } from '../signing.mjs';

export default {
  provider: 'gocardless',
  sdk: 'gocardless-nodejs',
  secret: 'conformance gocardless',
  otherSecret: 'conformance other',
  timestamped: false,
  signatureHeader: 'webhook-signature',

  async deliver({ id, secret }) {
    const body = JSON.stringify({
      events: [{ id, created_at: '2026-11-20T12:00:00.000Z', resource_type: 'payments', action: 'confirmed', details: { description: 'Grüße' } }],
      meta: { webhook_id: 'WB123' },
    });
    return { body, headers: { 'content-type': 'application/json', 'webhook-signature': hmac('sha256', secret, body, 'hex') } };
  },

  async verify({ headers, body }, secret) {
    verifySignature(body, secret, headers['webhook-signature']);
    return true;
  },
};
