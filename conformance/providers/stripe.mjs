// Stripe signs "timestamp.body"; its SDK makes such headers for tests.
import Stripe from 'stripe';

const stripe = new Stripe('sk_test_unused');

export default {
  provider: 'stripe',
  sdk: 'stripe',
  secret: 'whsec_conformance_stripe',
  otherSecret: 'whsec_conformance_other',
  timestamped: true,
  signatureHeader: 'stripe-signature',

  async deliver({ id, secret, at }) {
    const body = JSON.stringify({ id, object: 'event', type: 'invoice.paid', data: { object: { id: 'in_1', note: 'Grüße' } } }, null, 2);
    const signature = stripe.webhooks.generateTestHeaderString({ payload: body, secret, timestamp: Math.floor(at / 1000) });
    return { body, headers: { 'content-type': 'application/json; charset=utf-8', 'stripe-signature': signature } };
  },

  async verify({ headers, body }, secret) {
    stripe.webhooks.constructEvent(body, headers['stripe-signature'], secret);
    return true;
  },
};
