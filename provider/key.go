package provider

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
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
	macs   sync.Pool // of *mac
	public ed25519.PublicKey
	token  [sha256.Size]byte
}

// mac computes an HMAC with buffers of its own.
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
}

func (s Scheme) keyFormat() (keyFormat, error) {
	encoding, err := encodingNamed("key_encoding", s.KeyEncoding, encodingRaw, encodingRaw, encodingBase64, encodingHex)
	if err != nil {
		return keyFormat{}, err
	}
	if s.KeyPrefixRequired && s.KeyPrefix == "" {
		return keyFormat{}, fmt.Errorf("key_prefix_required: needs a key_prefix")
	}
	return keyFormat{encoding, s.KeyPrefix, s.KeyPrefixRequired, s.PrivateKeyPrefix}, nil
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
	return out, nil
}

var (
	errEmptySecret   = errors.New("secret is empty")
	errPrivateSecret = errors.New("secret is a private key; verification needs the public key")
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
	bytes, err := s.key.bytes(text)
	if err != nil {
		return nil, err
	}
	k := new(key)
	switch s.algorithm.kind {
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
