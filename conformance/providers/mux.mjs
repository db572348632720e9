// Mux signs "timestamp.body" in a header like Stripe's.
import Mux from '@mux/mux-node';
import { hmac, seconds } from '../signing.mjs';

const mux = new Mux({ tokenId: 'unused', tokenSecret: 'unused' });

export default {
  provider: 'mux',
  sdk: '@mux/mux-node',
  secret: 'conformance mux',
  otherSecret: 'conformance other',
  timestamped: true,
  signatureHeader: 'mux-signature',

  async deliver({ id, secret, at }) {
    const body = JSON.stringify({ type: 'video.asset.ready', id, data: { passthrough: 'Grüße' }, environment: { id: 'e1' } });
    const signature = hmac('sha256', secret, `${seconds(at)}.${body}`, 'hex');
    return { body, headers: { 'content-type': 'application/json', 'mux-signature': `t=${seconds(at)},v1=${signature}` } };
  },

  async verify({ headers, body }, secret) {
    await mux.webhooks.verifySignature(body, headers, secret);
    return true;
  },
};
