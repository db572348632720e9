// A self-signed certificate in PEM, for schemes whose key comes in one: no tool that makes them is sure to be there.
import { createPublicKey, sign } from 'node:crypto';

function der(tag, ...parts) {
  const content = Buffer.concat(parts);
  const length = content.length < 128 ? [content.length] : [0x82, content.length >> 8, content.length & 255];
  return Buffer.concat([Buffer.from([tag, ...length]), content]);
}

const sequence = (...parts) => der(0x30, ...parts);
const oid = (hex) => der(0x06, Buffer.from(hex, 'hex'));
const sha256WithRSA = sequence(oid('2a864886f70d01010b'), der(0x05));
const utcTime = (date) => der(0x17, Buffer.from(date.toISOString().replace(/[-:T]|\.\d+/g, '').slice(2)));

export function certificate(privateKey, host) {
  const commonName = sequence(der(0x31, sequence(oid('550403'), der(0x0c, Buffer.from(host)))));
  const days = (n) => utcTime(new Date(Date.now() + n * 24 * 60 * 60 * 1000));
  const body = sequence(
    der(0x02, Buffer.from([1])), sha256WithRSA, commonName, sequence(days(-1), days(1)), commonName,
    createPublicKey(privateKey).export({ format: 'der', type: 'spki' }),
  );
  const signature = der(0x03, Buffer.from([0]), sign('sha256', body, privateKey));
  const base64 = sequence(body, sha256WithRSA, signature).toString('base64').replace(/.{1,64}/g, '$&\n');
  return `-----BEGIN CERTIFICATE-----\n${base64}-----END CERTIFICATE-----\n`;
}
