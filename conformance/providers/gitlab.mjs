// GitLab's signing tokens follow Standard Webhooks. It has no package of its own: the reference library of the standard signs.
import standard from './standard-webhooks.mjs';

export default {
  ...standard,
  provider: 'gitlab',
  variant: 'signing token',

  async deliver(options) {
    const { body, headers } = await standard.deliver(options);
    return { body, headers: { ...headers, 'idempotency-key': options.id, 'x-gitlab-event': 'Push Hook' } };
  },
};
