// What is tried with every provider. A case delivers once or more and returns what is wrong, nothing if all is well.

const minutes = 60 * 1000;

const accepted = { status: 200, result: 'processed', runs: 1 };
const duplicate = { status: 200, result: 'duplicate', runs: 0 };
const refused = { status: 401, result: 'invalid_signature', runs: 0 };

// Each case makes a delivery from a good one; `only` leaves it out where a provider has no such thing.
export const cases = [
  { name: 'accepted', make: (p, sign) => sign(), want: accepted },
  { name: 'copy', make: (p, sign) => sign(), before: accepted, want: duplicate },
  { name: 'tampered', only: (p) => !p.bodyUnsigned, make: async (p, sign) => (p.tamper ?? tamper)(await sign()), want: refused },
  { name: 'truncated', make: async (p, sign) => edit(p, await sign(), (value) => value.slice(0, -8)), want: refused },
  { name: 'empty', make: async (p, sign) => edit(p, await sign(), () => ''), want: refused },
  { name: 'wrong key', make: (p, sign) => sign({ secret: p.otherSecret }), want: refused },
  { name: 'unsigned', make: async (p, sign) => edit(p, await sign(), () => undefined), want: refused },
  { name: 'stale', only: (p) => p.timestamped, make: (p, sign) => sign({ at: Date.now() - off(p) }), want: refused },
  { name: 'future', only: (p) => p.timestamped, make: (p, sign) => sign({ at: Date.now() + off(p) }), want: refused },
];

// Twice what the provider's timestamps may be off.
function off({ toleranceMinutes = 5 }) {
  return 2 * toleranceMinutes * minutes;
}

// The last brace of the body becomes another byte.
function tamper({ body, ...rest }) {
  return { ...rest, body: body.slice(0, -1) + ' ' + body.slice(-1) };
}

// Changes the signature, or removes it where the change returns undefined.
function edit(provider, delivery, change) {
  if (provider.editSignature) {
    return provider.editSignature(delivery, change);
  }
  const { headers } = delivery;
  const changed = { ...headers };
  const value = change(headers[provider.signatureHeader]);
  if (value === undefined) {
    delete changed[provider.signatureHeader];
  } else {
    changed[provider.signatureHeader] = value;
  }
  return { ...delivery, headers: changed };
}
