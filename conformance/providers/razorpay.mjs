// Razorpay signs the body alone; an unsigned header names the event.
import Razorpay from 'razorpay';
import { hmac } from '../signing.mjs';

export default {
  provider: 'razorpay',
  sdk: 'razorpay',
  secret: 'conformance razorpay',
  otherSecret: 'conformance other',
  timestamped: false,
  signatureHeader: 'x-razorpay-signature',

  async deliver({ id, secret }) {
    const body = JSON.stringify({ entity: 'event', event: 'payment.captured', account_id: 'acc_1', payload: { note: 'Grüße' } });
    return {
      body,
      headers: {
        'content-type': 'application/json',
        'x-razorpay-event-id': id,
        'x-razorpay-signature': hmac('sha256', secret, body, 'hex'),
      },
    };
  },

  verify: async ({ headers, body }, secret) => Razorpay.validateWebhookSignature(body, headers['x-razorpay-signature'], secret),
};
