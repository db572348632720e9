// Twilio with a field given several times, about which its SDKs disagree; the one for Node sorts the distinct values.
import { parse } from 'node:querystring';
import twilio from 'twilio';
import { getExpectedTwilioSignature } from 'twilio/lib/webhooks/webhooks.js';
import plain from './twilio.mjs';

const url = plain.publicURL + '/twilio-repeated';

export default {
  ...plain,
  variant: 'repeated fields',

  async deliver({ id, secret }) {
    const body = `MessageStatus=sent&MessageSid=${id}&MediaUrl=b&MediaUrl=a&MediaUrl=b`;
    return {
      body,
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        'x-twilio-signature': getExpectedTwilioSignature(secret, url, parse(body)),
      },
    };
  },

  verify: async ({ headers, body }, secret) => twilio.validateRequest(secret, headers['x-twilio-signature'], url, parse(body)),
};
