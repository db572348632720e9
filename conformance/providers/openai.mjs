// OpenAI follows Standard Webhooks; that SDK signs, OpenAI's own verifies.
import OpenAI from 'openai';
import standard from './standard-webhooks.mjs';

const openai = new OpenAI({ apiKey: 'unused' });

export default {
  ...standard,
  provider: 'openai',
  sdk: 'openai',

  async verify({ headers, body }, secret) {
    await openai.webhooks.verifySignature(body, headers, secret);
    return true;
  },
};
