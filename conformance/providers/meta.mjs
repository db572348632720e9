// Meta signs the body alone. The computation is that of its WhatsApp SDK, which does not export it and whose own server
// fails on every delivery; later versions of the package are somebody else's.
import { createRequire } from 'node:module';
import { join } from 'node:path';

const require = createRequire(import.meta.url);
const { generateXHub256Sig } = require(join(import.meta.dirname, '../node_modules/whatsapp/build/utils.js'));

export default {
  provider: 'meta',
  sdk: 'whatsapp',
  secret: 'conformance meta',
  otherSecret: 'conformance other',
  timestamped: false,
  signatureHeader: 'x-hub-signature-256',

  async deliver({ id, secret }) {
    const message = { from: '49151', id, type: 'text', timestamp: '1', text: { body: 'Grüße' } };
    const body = JSON.stringify({
      object: 'whatsapp_business_account',
      entry: [{ id: '1', changes: [{ field: 'messages', value: { messages: [message] } }] }],
    });
    return {
      body,
      headers: { 'content-type': 'application/json', 'x-hub-signature-256': 'sha256=' + generateXHub256Sig(body, secret) },
    };
  },

  verify: async ({ headers, body }, secret) => headers['x-hub-signature-256'] === 'sha256=' + generateXHub256Sig(body, secret),
};
