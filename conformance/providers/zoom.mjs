// Zoom signs "v0:timestamp:body"; Rivet writes the body anew, so it must be what JSON.stringify makes.
import { AwsLambdaReceiver } from '@zoom/rivet/meetings'; // the package's own index does not load
import { hmac, seconds } from '../signing.mjs';

export default {
  provider: 'zoom',
  sdk: '@zoom/rivet',
  secret: 'conformance zoom',
  otherSecret: 'conformance other',
  timestamped: true,
  signatureHeader: 'x-zm-signature',

  async deliver({ id, secret, at }) {
    const body = JSON.stringify({ event: 'meeting.started', event_ts: 1, payload: { account_id: 'a1', object: { uuid: id, topic: 'Grüße' } } });
    return {
      body,
      headers: {
        'content-type': 'application/json; charset=utf-8',
        'x-zm-request-timestamp': seconds(at),
        'x-zm-signature': 'v0=' + hmac('sha256', secret, `v0:${seconds(at)}:${body}`, 'hex'),
      },
    };
  },

  async verify({ headers, body }, secret) {
    const receiver = new AwsLambdaReceiver({ webhooksSecretToken: secret });
    receiver.init({ eventEmitter: { emit: async () => {} } });
    const { debug } = console;
    console.debug = () => {}; // it prints each delivery
    try {
      const { statusCode } = await receiver.start()({ body, headers, isBase64Encoded: false }, {});
      return statusCode === 200;
    } finally {
      console.debug = debug;
    }
  },
};
