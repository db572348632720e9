// Clerk sends through Svix; its own SDK verifies, that of Svix signs.
import { verifyWebhook } from '@clerk/backend/webhooks';
import svix from './svix.mjs';

export default {
  ...svix,
  provider: 'clerk',
  sdk: '@clerk/backend',

  async verify({ headers, body }, secret) {
    const request = new Request('https://hooks.example.com/clerk', { method: 'POST', headers, body });
    await verifyWebhook(request, { signingSecret: secret });
    return true;
  },
};
