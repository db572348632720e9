// Twilio's JSON: the URL is signed, and has the body's hash in its query.
import twilio from 'twilio';
import { getExpectedBodyHash, getExpectedTwilioSignature } from 'twilio/lib/webhooks/webhooks.js';
import form from './twilio.mjs';

const url = form.publicURL + '/twilio-json';

export default {
  ...form,
  variant: 'JSON',

  async deliver({ id, secret }) {
    const body = JSON.stringify([{ specversion: '1.0', type: 'com.twilio.messaging.message.delivered', id, data: { note: 'Grüße' } }]);
    const query = '?bodySHA256=' + getExpectedBodyHash(body);
    return {
      body,
      query,
      headers: { 'content-type': 'application/json', 'x-twilio-signature': getExpectedTwilioSignature(secret, url + query, {}) },
    };
  },

  verify: async ({ headers, body, query }, secret) =>
    twilio.validateRequestWithBody(secret, headers['x-twilio-signature'], url + query, body),
};
