// WorkOS signs "timestamp.body" in milliseconds; its SDK writes the body anew, so it must be what JSON.stringify makes.
import { WorkOS } from '@workos-inc/node';
import { hmac } from '../signing.mjs';

const workos = new WorkOS('unused');

export default {
  provider: 'workos',
  sdk: '@workos-inc/node',
  secret: 'conformance workos',
  otherSecret: 'conformance other',
  timestamped: true,
  signatureHeader: 'workos-signature',

  async deliver({ id, secret, at }) {
    const body = JSON.stringify({ id, event: 'user.created', data: { organization_id: 'org_1', first_name: 'Grüße' } });
    const signature = hmac('sha256', secret, `${at}.${body}`, 'hex');
    return { body, headers: { 'content-type': 'application/json', 'workos-signature': `t=${at}, v1=${signature}` } };
  },

  verify: ({ headers, body }, secret) =>
    workos.webhooks.verifyHeader({ payload: JSON.parse(body), sigHeader: headers['workos-signature'], secret }),
};
