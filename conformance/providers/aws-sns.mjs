// SNS signs some members of its JSON with RSA; the secret is the topic, the key is in a certificate that the message names.
import { generateKeyPairSync, sign } from 'node:crypto';
import https from 'node:https';
import { createRequire } from 'node:module';
import { PassThrough } from 'node:stream';
import { certificate } from '../certificates.mjs';

const require = createRequire(import.meta.url);
const topic = 'arn:aws:sns:eu-central-1:123456789012:conformance';
const signed = ['Message', 'MessageId', 'Subject', 'Timestamp', 'TopicArn', 'Type'];

// The two "secrets" stand for two keys, of which only the first has the certificate that is configured.
const other = topic + '-other';
const keys = Object.fromEntries([topic, other].map((secret) => {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  return [secret, { privateKey, pem: certificate(privateKey, 'sns.amazonaws.com') }];
}));

// The SDK fetches the certificate and keeps it by its address: it gets the one of the secret, and is loaded anew each time.
async function validate(message, secret) {
  delete require.cache[require.resolve('sns-validator')];
  const Validator = require('sns-validator');
  const { get } = https;
  https.get = (url, answer) => {
    const response = Object.assign(new PassThrough(), { statusCode: 200 });
    answer(response);
    response.end(keys[secret].pem);
    return response;
  };
  try {
    await new Promise((resolve, reject) => new Validator().validate(message, (error) => (error ? reject(error) : resolve())));
  } finally {
    https.get = get;
  }
}

export default {
  provider: 'aws-sns',
  sdk: 'sns-validator',
  secret: topic,
  otherSecret: other,
  secretIsPublic: true,
  certificate: keys[topic].pem,
  timestamped: true,
  toleranceMinutes: 65,

  async deliver({ id, secret, at }) {
    const message = {
      Type: 'Notification', MessageId: id, TopicArn: topic, Subject: 'Grüße', Message: '{"order":1}',
      Timestamp: new Date(at).toISOString(), SignatureVersion: '2',
      SigningCertURL: 'https://sns.eu-central-1.amazonaws.com/SimpleNotificationService-conformance.pem',
    };
    const content = signed.map((name) => `${name}\n${message[name]}\n`).join('');
    message.Signature = sign('sha256', Buffer.from(content), keys[secret].privateKey).toString('base64');
    return { body: JSON.stringify(message), headers: { 'content-type': 'text/plain; charset=UTF-8' } };
  },

  tamper: ({ headers, body }) => ({ headers, body: body.replace('order', 'ordre') }),

  editSignature({ headers, body }, change) {
    const message = JSON.parse(body);
    return { headers, body: JSON.stringify({ ...message, Signature: change(message.Signature) }) };
  },

  async verify({ body }, secret) {
    await validate(body, secret);
    return true;
  },
};
