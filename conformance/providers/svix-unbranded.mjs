// Svix without its name: the same SDK, the headers of Standard Webhooks, the provider still svix.
import svix from './svix.mjs';

const unbranded = (headers) => Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.replace(/^svix-/, 'webhook-'), value]));

export default {
  ...svix,
  variant: 'unbranded',
  signatureHeader: 'webhook-signature',

  async deliver(options) {
    const { body, headers } = await svix.deliver(options);
    return { body, headers: unbranded(headers) };
  },
};
