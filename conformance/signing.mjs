// Signing by hand, for SDKs that only verify; the SDK then says whether it is what its provider does.
import { createHmac } from 'node:crypto';

export const hmac = (algorithm, secret, content, encoding) => createHmac(algorithm, secret).update(content, 'utf8').digest(encoding);

export const seconds = (at) => String(Math.floor(at / 1000));
