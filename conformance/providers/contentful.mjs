// Contentful signs method, path, some headers and the body; its toolkit does so.
import { signRequest, verifyRequest } from '@contentful/node-apps-toolkit';

const request = (query, headers, body) => ({ method: 'POST', path: '/contentful' + query, headers, body });

export default {
  provider: 'contentful',
  sdk: '@contentful/node-apps-toolkit',
  secret: 'conformance contentful '.padEnd(64, '0'), // 64 characters
  otherSecret: 'conformance other '.padEnd(64, '0'),
  publicURL: 'https://hooks.example.com',
  timestamped: true,
  signatureHeader: 'x-contentful-signature',

  async deliver({ id, secret, at }) {
    const body = JSON.stringify({ sys: { type: 'Entry', id: 'e1' }, fields: { title: { de: 'Grüße' } } });
    const query = '?source=a%20b';
    const headers = {
      'content-type': 'application/vnd.contentful.management.v1+json',
      'x-contentful-idempotency-key': id,
      'x-contentful-topic': 'ContentManagement.Entry.publish',
    };
    return { body, query, headers: { ...headers, ...signRequest(secret, request(query, headers, body), at) } };
  },

  verify: async ({ headers, body, query }, secret) => verifyRequest(secret, request(query, headers, body)),
};
