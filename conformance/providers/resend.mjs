// Resend sends through Svix; its own SDK verifies, that of Svix signs.
import { Resend } from 'resend';
import svix from './svix.mjs';

const resend = new Resend('unused');

export default {
  ...svix,
  provider: 'resend',
  sdk: 'resend',

  async verify({ headers, body }, secret) {
    const [id, timestamp, signature] = ['svix-id', 'svix-timestamp', 'svix-signature'].map((name) => headers[name]);
    resend.webhooks.verify({ payload: body, headers: { id, timestamp, signature }, webhookSecret: secret });
    return true;
  },
};
