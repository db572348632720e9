// Chargebee signs nothing: a user name and a password authenticate.
import { basicAuthValidator } from 'chargebee';

export default {
  provider: 'chargebee',
  sdk: 'chargebee',
  secret: 'conformance:chargebee pass: word',
  otherSecret: 'conformance:other',
  timestamped: false,
  bodyUnsigned: true,
  signatureHeader: 'authorization',

  async deliver({ id, secret }) {
    const body = JSON.stringify({ id, event_type: 'subscription_created', content: { note: 'Grüße' } });
    return { body, headers: { 'content-type': 'application/json', authorization: 'Basic ' + Buffer.from(secret).toString('base64') } };
  },

  async verify({ headers }, secret) {
    await basicAuthValidator((user, password) => `${user}:${password}` === secret)(headers);
    return true;
  },
};
