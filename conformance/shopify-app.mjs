// Shopify's SDK verifies and does not sign: the deliveries are signed by hand here, and its validator says whether that
// is what Shopify does.
import { createHmac } from 'node:crypto';
import { shopifyApi, ApiVersion, LogSeverity } from '@shopify/shopify-api';
import '@shopify/shopify-api/adapters/node';

export const sign = (secret, body) => createHmac('sha256', secret).update(body, 'utf8').digest('base64');

export async function validate({ headers, body }, secret) {
  const app = shopifyApi({
    apiKey: 'conformance',
    apiSecretKey: secret,
    apiVersion: Object.values(ApiVersion).at(-1),
    hostName: 'shop.example.com',
    isEmbeddedApp: false,
    logger: { level: LogSeverity.Error },
  });
  const { valid } = await app.webhooks.validate({ rawBody: body, rawRequest: { method: 'POST', url: '/', headers } });
  return valid;
}
