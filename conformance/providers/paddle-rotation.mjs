// Paddle during a rotation, with two h1. Its SDK for Node keeps the last, so the right one stands there; here any may match.
import { hmac, seconds } from '../signing.mjs';
import paddle from './paddle.mjs';

export default {
  ...paddle,
  variant: 'two h1',

  async deliver(options) {
    const { body, headers } = await paddle.deliver(options);
    const old = hmac('sha256', 'the key before', `${seconds(options.at)}:${body}`, 'hex');
    return { body, headers: { ...headers, 'paddle-signature': headers['paddle-signature'].replace(';h1=', `;h1=${old};h1=`) } };
  },
};
