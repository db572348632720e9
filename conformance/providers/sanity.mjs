// Sanity signs "timestamp.body" in milliseconds, in base64url; its SDK writes the header.
import { encodeSignatureHeader, isValidSignature } from '@sanity/webhook';

export default {
  provider: 'sanity',
  sdk: '@sanity/webhook',
  secret: 'conformance sanity',
  otherSecret: 'conformance other',
  timestamped: true,
  signatureHeader: 'sanity-webhook-signature',

  async deliver({ id, secret, at }) {
    const body = JSON.stringify({ _id: 'doc', _type: 'article', title: 'Grüße' });
    return {
      body,
      headers: {
        'content-type': 'application/json',
        'idempotency-key': id,
        'sanity-operation': 'update',
        'sanity-webhook-signature': await encodeSignatureHeader(body, at, secret),
      },
    };
  },

  verify: ({ headers, body }, secret) => isValidSignature(body, headers['sanity-webhook-signature'], secret),
};
