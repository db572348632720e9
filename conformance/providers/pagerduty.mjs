// PagerDuty signs the body alone; its package in Go verifies.
import { goVerify, goVersion } from '../go-sdk.mjs';
import { hmac } from '../signing.mjs';

const sdk = 'github.com/PagerDuty/go-pagerduty';

export default {
  provider: 'pagerduty',
  sdk,
  version: goVersion(sdk),
  secret: 'conformance pagerduty',
  otherSecret: 'conformance other',
  timestamped: false,
  signatureHeader: 'x-pagerduty-signature',

  async deliver({ id, secret }) {
    const body = JSON.stringify({ event: { id: 'e1', event_type: 'incident.triggered', data: { title: 'Grüße' } } });
    return {
      body,
      headers: {
        'content-type': 'application/json',
        'x-webhook-id': id,
        'x-pagerduty-signature': 'v1=' + hmac('sha256', secret, body, 'hex'),
      },
    };
  },

  verify: goVerify('pagerduty'),
};
