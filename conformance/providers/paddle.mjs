// Paddle signs "timestamp:body"; its SDK allows 5 seconds, so it is asked at once.
import { Paddle } from '@paddle/paddle-node-sdk';
import { hmac, seconds } from '../signing.mjs';

const paddle = new Paddle('unused');

export default {
  provider: 'paddle',
  sdk: '@paddle/paddle-node-sdk',
  secret: 'pdl_ntfset_conformance',
  otherSecret: 'pdl_ntfset_other',
  timestamped: true,
  signatureHeader: 'paddle-signature',

  async deliver({ id, secret, at }) {
    const body = JSON.stringify({ event_id: id, event_type: 'transaction.paid', notification_id: 'ntf_1', data: { note: 'Grüße' } });
    const signature = hmac('sha256', secret, `${seconds(at)}:${body}`, 'hex');
    return { body, headers: { 'content-type': 'application/json', 'paddle-signature': `ts=${seconds(at)};h1=${signature}` } };
  },

  verify: ({ headers, body }, secret) => paddle.webhooks.isSignatureValid(body, secret, headers['paddle-signature']),
};
