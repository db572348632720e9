// HubSpot's version 1 hashes the secret and the body, without a time.
import hubspot from '@hubspot/api-client';
import v3, { event, options } from './hubspot.mjs';

const path = '/hubspot-v1';

export default {
  ...v3,
  variant: 'version 1',
  timestamped: false,
  signatureHeader: 'x-hubspot-signature',

  async deliver({ id, secret }) {
    const body = event(id);
    return {
      body,
      headers: {
        'content-type': 'application/json',
        'x-hubspot-signature-version': 'v1',
        'x-hubspot-signature': hubspot.Signature.getSignature('POST', 'v1', options({ body }, path, secret)),
      },
    };
  },

  verify: async (delivery, secret) => hubspot.Signature.isValid({
    ...options(delivery, path, secret),
    signature: delivery.headers['x-hubspot-signature'],
    signatureVersion: 'v1',
    method: 'POST',
  }),
};
