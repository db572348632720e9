// Twilio signs the URL and the sorted fields of the form; its SDK computes that.
import twilio from 'twilio';
import { getExpectedTwilioSignature } from 'twilio/lib/webhooks/webhooks.js';

const publicURL = 'https://hooks.example.com';
const url = publicURL + '/twilio';

export default {
  provider: 'twilio',
  sdk: 'twilio',
  secret: 'conformance twilio',
  otherSecret: 'conformance other',
  publicURL,
  timestamped: false,
  signatureHeader: 'x-twilio-signature',

  async deliver({ id, secret }) {
    const fields = { To: '+15005550006', MessageSid: id, MessageStatus: 'delivered', AccountSid: 'AC1', Body: 'Grüße & ciao' };
    return {
      body: new URLSearchParams(fields).toString(),
      headers: {
        'content-type': 'application/x-www-form-urlencoded; charset=utf-8',
        'x-twilio-signature': getExpectedTwilioSignature(secret, url, fields),
      },
    };
  },

  verify: async ({ headers, body }, secret) =>
    twilio.validateRequest(secret, headers['x-twilio-signature'], url, Object.fromEntries(new URLSearchParams(body))),
};
