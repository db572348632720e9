// Coinbase Commerce signs the body alone; its SDK knows how.
import coinbase from 'coinbase-commerce-node';

export default {
  provider: 'coinbase-commerce',
  sdk: 'coinbase-commerce-node',
  secret: 'conformance coinbase commerce',
  otherSecret: 'conformance other',
  timestamped: false,
  signatureHeader: 'x-cc-webhook-signature',

  async deliver({ id, secret }) {
    const body = JSON.stringify({ id: 'd1', attempt_number: 1, event: { id, type: 'charge:confirmed', data: { name: 'Grüße' } } });
    return {
      body,
      headers: { 'content-type': 'application/json', 'x-cc-webhook-signature': coinbase.Webhook.computeSignature(body, secret) },
    };
  },

  async verify({ headers, body }, secret) {
    coinbase.Webhook.verifyEventBody(body, headers['x-cc-webhook-signature'], secret);
    return true;
  },
};
