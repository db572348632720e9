// Adyen's classic notifications: each element has a signature of its own, over eight of its fields.
import { hmacValidator as HmacValidator } from '@adyen/api-library';
import platform from './adyen-platform.mjs';

const validator = new HmacValidator();
const write = (item) => JSON.stringify({ live: 'false', notificationItems: [{ NotificationRequestItem: item }] });
const read = (body) => JSON.parse(body).notificationItems[0].NotificationRequestItem;

export default {
  ...platform,
  variant: undefined,

  async deliver({ id, secret }) {
    const item = {
      pspReference: id, originalReference: '', merchantAccountCode: 'TestMerchant', merchantReference: 'Grüße 1',
      amount: { value: 1130, currency: 'EUR' }, eventCode: 'AUTHORISATION', success: 'true',
    };
    item.additionalData = { hmacSignature: validator.calculateHmac(item, secret) };
    return { body: write(item), headers: { 'content-type': 'application/json' } };
  },

  tamper: ({ headers, body }) => ({ headers, body: write({ ...read(body), success: 'false' }) }),

  editSignature({ headers, body }, change) {
    const item = read(body);
    item.additionalData.hmacSignature = change(item.additionalData.hmacSignature);
    return { headers, body: write(item) };
  },

  verify: async ({ body }, secret) => validator.validateHMAC(read(body), secret),
};
