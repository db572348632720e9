// Slack signs "v0:timestamp:body".
import bolt from '@slack/bolt';
import { hmac, seconds } from '../signing.mjs';

export default {
  provider: 'slack',
  sdk: '@slack/bolt',
  secret: 'conformance slack',
  otherSecret: 'conformance other',
  timestamped: true,
  signatureHeader: 'x-slack-signature',

  async deliver({ id, secret, at }) {
    const body = JSON.stringify({ type: 'event_callback', team_id: 'T1', event_id: id, event: { type: 'message', text: 'Grüße' } });
    const timestamp = seconds(at);
    return {
      body,
      headers: {
        'content-type': 'application/json',
        'x-slack-request-timestamp': timestamp,
        'x-slack-signature': 'v0=' + hmac('sha256', secret, `v0:${timestamp}:${body}`, 'hex'),
      },
    };
  },

  async verify({ headers, body }, secret) {
    bolt.verifySlackRequest({ signingSecret: secret, body, headers });
    return true;
  },
};
