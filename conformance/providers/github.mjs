// GitHub signs the body alone; its deliveries carry no time.
import { sign, verify } from '@octokit/webhooks-methods';

export default {
  provider: 'github',
  sdk: '@octokit/webhooks-methods',
  secret: 'conformance github',
  otherSecret: 'conformance other',
  timestamped: false,
  signatureHeader: 'x-hub-signature-256',

  async deliver({ id, secret }) {
    const body = JSON.stringify({ action: 'opened', issue: { number: 1, title: 'Grüße' }, repository: { full_name: 'o/r' } });
    return {
      body,
      headers: {
        'content-type': 'application/json',
        'user-agent': 'GitHub-Hookshot/conformance',
        'x-github-delivery': id,
        'x-github-event': 'issues',
        'x-github-hook-id': '1234',
        'x-hub-signature-256': await sign(secret, body),
      },
    };
  },

  verify: ({ headers, body }, secret) => verify(secret, body, headers['x-hub-signature-256']),
};
