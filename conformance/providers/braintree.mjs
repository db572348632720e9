// Braintree sends a form with a payload and its signatures; its SDK makes such for tests.
import braintree from 'braintree';

// The secret is "<public key>|<private key>".
function gateway(secret) {
  const [publicKey, privateKey] = secret.split('|');
  return new braintree.BraintreeGateway({ environment: braintree.Environment.Sandbox, merchantId: 'm', publicKey, privateKey });
}

// Without a signature its field is left out.
function form(signature, payload) {
  const fields = new URLSearchParams(signature === undefined ? {} : { bt_signature: signature });
  fields.set('bt_payload', payload);
  return fields.toString();
}

const payloads = new Map(); // by event: the SDK puts the time in, and a retry has the same

export default {
  provider: 'braintree',
  sdk: 'braintree',
  secret: 'conformance_public|conformance private',
  otherSecret: 'conformance_public|conformance other',
  timestamped: false,

  async deliver({ id, secret }) {
    const { webhookTesting } = gateway(secret);
    if (!payloads.has(id)) {
      payloads.set(id, (await webhookTesting.sampleNotification('subscription_went_past_due', id)).bt_payload);
    }
    const payload = payloads.get(id);
    return {
      body: form(await webhookTesting.sampleSignature(payload), payload),
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    };
  },

  tamper({ headers, body }) {
    const fields = new URLSearchParams(body);
    const xml = Buffer.from(fields.get('bt_payload'), 'base64').toString().replace('past_due', 'active');
    return { headers, body: form(fields.get('bt_signature'), Buffer.from(xml).toString('base64') + '\n') };
  },

  editSignature({ headers, body }, change) {
    const fields = new URLSearchParams(body);
    return { headers, body: form(change(fields.get('bt_signature')), fields.get('bt_payload')) };
  },

  async verify({ body }, secret) {
    const fields = new URLSearchParams(body);
    await gateway(secret).webhookNotification.parse(fields.get('bt_signature'), fields.get('bt_payload'));
    return true;
  },
};
