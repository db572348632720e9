// HubSpot's version 2 hashes the secret, the method, the URL and the body, without a time.
import hubspot from '@hubspot/api-client';
import v3, { event, options } from './hubspot.mjs';

const path = '/hubspot-v2';

export default {
  ...v3,
  variant: 'version 2',
  timestamped: false,
  signatureHeader: 'x-hubspot-signature',

  async deliver({ id, secret }) {
    const body = event(id);
    return {
      body,
      headers: {
        'content-type': 'application/json',
        'x-hubspot-signature-version': 'v2',
        'x-hubspot-signature': hubspot.Signature.getSignature('POST', 'v2', options({ body }, path, secret)),
      },
    };
  },

  verify: async (delivery, secret) => hubspot.Signature.isValid({
    ...options(delivery, path, secret),
    signature: delivery.headers['x-hubspot-signature'],
    signatureVersion: 'v2',
    method: 'POST',
  }),
};
