// Adyen's platform and management webhooks: the body alone is signed, with a hexadecimal key.
import { hmacValidator as HmacValidator } from '@adyen/api-library';

const validator = new HmacValidator();

export default {
  provider: 'adyen',
  variant: 'platform',
  sdk: '@adyen/api-library',
  secret: '44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056',
  otherSecret: '0123456789ABCDEF0123456789ABCDEF0123456789ABCDEF0123456789ABCDEF',
  timestamped: false,
  signatureHeader: 'hmacsignature',

  async deliver({ id, secret }) {
    const body = JSON.stringify({ type: 'balancePlatform.transfer.updated', data: { id, description: 'Grüße' } });
    return { body, headers: { 'content-type': 'application/json', hmacsignature: validator.calculateHmac(body, secret) } };
  },

  verify: async ({ headers, body }, secret) => validator.validateHMACSignature(secret, headers.hmacsignature, body),
};
