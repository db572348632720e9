package provider

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"slices"
	"strings"
	"sync"
)

// Key is a secret made ready by [Compiled.Key]. It is safe for concurrent use and prints as [redacted].
type Key struct {
	by       *Compiled
	prepared []*key // by scheme; nil where the secret is not for it
}

// String, GoString and MarshalText keep the secret out of logs.
func (Key) String() string { return "[redacted]" }

// GoString implements [fmt.GoStringer].
func (Key) GoString() string { return "[redacted]" }

// MarshalText implements [encoding.TextMarshaler].
func (Key) MarshalText() ([]byte, error) { return []byte("[redacted]"), nil }

// key is a secret made ready for one scheme.
type key struct {
	name   string    // see Scheme.KeyName
	text   string    // the secret's, for {secret} and Scheme.Pin
	macs   sync.Pool // of *mac
	public ed25519.PublicKey
	ecdsa  *ecdsa.PublicKey
	jwk    *jwk
	token  [sha256.Size]byte
}

// mac computes an HMAC, or a plain hash, with buffers of its own.
type mac struct {
	hash.Hash
	text []byte
	sum  []byte
}

func (m *mac) writeString(s string) {
	m.text = append(m.text[:0], s...)
	m.Write(m.text)
}

// keyFormat is how a secret becomes a key.
type keyFormat struct {
	encoding       string
	prefix         string
	prefixRequired bool
	privatePrefix  string
	hash           func() hash.Hash // nil: none
	name           string           // separator, empty: none
	refused        []string
}

func (s Scheme) keyFormat() (keyFormat, error) {
	encoding, err := encodingNamed("key_encoding", s.KeyEncoding, encodingRaw, encodingRaw, encodingBase64, encodingHex)
	if err != nil {
		return keyFormat{}, err
	}
	if s.KeyPrefixRequired && s.KeyPrefix == "" {
		return keyFormat{}, fmt.Errorf("key_prefix_required: needs a key_prefix")
	}
	f := keyFormat{encoding: encoding, prefix: s.KeyPrefix, prefixRequired: s.KeyPrefixRequired, privatePrefix: s.PrivateKeyPrefix,
		name: s.KeyName, refused: slices.Clone(s.RefusedSecrets)}
	switch s.KeyHash {
	case "":
	case "sha1":
		f.hash = sha1.New
	case "sha256":
		f.hash = sha256.New
	default:
		return keyFormat{}, fmt.Errorf("key hash %q is not known, allowed are sha1, sha256", s.KeyHash)
	}
	if len(s.KeyName) > 1 {
		return keyFormat{}, fmt.Errorf("key name separator %q: must be one character", s.KeyName)
	}
	return f, nil
}

// cutName splits the key's name from the secret.
func (f keyFormat) cutName(secret string) (name, rest string) {
	if f.name != "" {
		if name, rest, ok := strings.Cut(secret, f.name); ok {
			return name, rest
		}
	}
	return "", secret
}

// bytes decodes the secret without its prefix.
func (f keyFormat) bytes(secret string) ([]byte, error) {
	var out []byte
	var err error
	switch f.encoding {
	case encodingBase64:
		out, err = base64.StdEncoding.DecodeString(secret)
	case encodingHex:
		out, err = hex.DecodeString(secret)
	default:
		out = []byte(secret)
	}
	if err != nil {
		// The decoder's error would tell a byte of the secret.
		return nil, fmt.Errorf("secret is not %s", f.encoding)
	}
	if len(out) == 0 {
		return nil, errEmptySecret
	}
	if f.hash != nil {
		h := f.hash()
		h.Write(out)
		out = h.Sum(nil)
	}
	return out, nil
}

var (
	errEmptySecret   = errors.New("secret is empty")
	errPrivateSecret = errors.New("secret is a private key; verification needs the public key")
	errKnownSecret   = errors.New("secret is one that the provider has published, so anybody can sign with it")
	errBasicSecret   = errors.New("secret is not user:password")
)

// Key decodes a secret once, for any number of verifications. The error, which never contains the secret, says why it fits none
// of the provider's schemes; an empty secret fits none.
func (c *Compiled) Key(secret string) (Key, error) {
	if len(c.schemes) == 0 {
		return Key{}, ErrNoScheme
	}
	k := Key{by: c, prepared: make([]*key, len(c.schemes))}
	var first error
	fits := false
	for i, s := range c.schemes {
		prepared, err := c.prepare(s, secret)
		if errors.Is(err, errKnownSecret) {
			return Key{}, err
		}
		if err == nil {
			k.prepared[i] = prepared
			fits = fits || prepared != nil
		} else if first == nil {
			first = err
		}
	}
	if fits {
		return k, nil
	}
	if first == nil {
		first = errors.New("secret has a prefix that is not for this provider")
	}
	return Key{}, first
}

// prepare returns nil without an error if the secret's prefix says that it is for another scheme.
func (c *Compiled) prepare(s *scheme, secret string) (*key, error) {
	if strings.TrimSpace(secret) == "" {
		return nil, errEmptySecret
	}
	for _, other := range c.schemes {
		if p := other.key.privatePrefix; p != "" && strings.HasPrefix(secret, p) {
			return nil, errPrivateSecret
		}
	}
	text, ok := c.trimKeyPrefix(s, secret)
	if !ok {
		return nil, nil
	}
	if slices.Contains(s.key.refused, secret) {
		return nil, errKnownSecret
	}
	k := new(key)
	k.name, k.text = s.key.cutName(text)
	switch s.algorithm.kind {
	case kindECDSA:
		return k, k.setECDSA(k.text)
	case kindJWT:
		return k, k.setJWK(k.text)
	case kindRSA:
		if isPEM(k.text) {
			return nil, errKeyAsText
		}
		return k, nil // the certificate has the key; the secret is signed, or names the receiver
	case kindHash:
		k.macs.New = func() any { return &mac{Hash: s.algorithm.hash()} }
		return k, nil
	}
	bytes, err := s.key.bytes(k.text)
	if err != nil {
		return nil, err
	}
	switch s.algorithm.kind {
	case kindBasic:
		if !strings.Contains(k.text, ":") {
			return nil, errBasicSecret
		}
		fallthrough
	case kindToken:
		k.token = sha256.Sum256(bytes)
	case kindEd25519:
		if len(bytes) != ed25519.PublicKeySize {
			return nil, fmt.Errorf("secret is not an ed25519 public key of %d bytes in %s", ed25519.PublicKeySize, s.key.encoding)
		}
		k.public = bytes
	default:
		k.macs.New = func() any { return &mac{Hash: hmac.New(s.algorithm.hash, bytes)} }
	}
	return k, nil
}

// trimKeyPrefix removes the scheme's prefix from a secret; false if the scheme lacks a required one, or if it is another
// scheme's required one: a public key must never serve as an HMAC's secret.
func (c *Compiled) trimKeyPrefix(s *scheme, secret string) (string, bool) {
	if s.key.prefix != "" {
		if text, ok := strings.CutPrefix(secret, s.key.prefix); ok {
			return text, true
		}
		if s.key.prefixRequired {
			return "", false
		}
	}
	for _, other := range c.schemes {
		if other.key.prefixRequired && strings.HasPrefix(secret, other.key.prefix) {
			return "", false
		}
	}
	return secret, true
}
