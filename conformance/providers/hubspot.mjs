// HubSpot's version 3 signs method, URL, body and time; its SDK computes that.
import hubspot from '@hubspot/api-client';

const publicURL = 'https://hooks.example.com';

// What the SDK is asked about all versions.
export const options = ({ body, query = '' }, path, secret, timestamp) =>
  ({ clientSecret: secret, url: publicURL + path + query, requestBody: body, timestamp });

export const event = (id) =>
  JSON.stringify([{ portalId: 1, subscriptionId: 2, objectId: 3, occurredAt: 4, eventId: id, subscriptionType: 'contact.creation', name: 'Grüße' }]);

export default {
  provider: 'hubspot',
  sdk: '@hubspot/api-client',
  secret: 'conformance hubspot',
  otherSecret: 'conformance other',
  publicURL,
  timestamped: true,
  signatureHeader: 'x-hubspot-signature-v3',

  async deliver({ id, secret, at }) {
    const delivery = { body: event(id), query: '?q=a+b' };
    return {
      ...delivery,
      headers: {
        'content-type': 'application/json',
        'x-hubspot-request-timestamp': String(at),
        'x-hubspot-signature-v3': hubspot.Signature.getSignature('POST', 'v3', options(delivery, '/hubspot', secret, at)),
      },
    };
  },

  verify: async (delivery, secret) => hubspot.Signature.isValid({
    ...options(delivery, '/hubspot', secret, Number(delivery.headers['x-hubspot-request-timestamp'])),
    signature: delivery.headers['x-hubspot-signature-v3'],
    signatureVersion: 'v3',
    method: 'POST',
  }),
};
