package provider

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// KeySource gives the JWKs that deliveries name by their IDs. The package fetches nothing itself: an implementation fetches once,
// remembers, and bounds both.
type KeySource interface {
	// JWK returns the public key with the ID, as JSON.
	JWK(kid string) ([]byte, error)
}

// maxJWK bounds a JWK, and maxKeyID its ID, in bytes.
const (
	maxJWK   = 8 << 10
	maxKeyID = 256
)

var errJWK = errors.New("secret is not the JWK of a P-256 public key")

// jwk is a public key with an ID, which may be empty, and the time from which on it is not used, zero if there is none.
type jwk struct {
	id      string
	key     *ecdsa.PublicKey
	expired time.Time
}

func parseJWK(text []byte) (*jwk, error) {
	if len(text) > maxJWK {
		return nil, errJWK
	}
	var parsed jose.JSONWebKey
	if parsed.UnmarshalJSON(text) != nil {
		return nil, errJWK // its error might tell something of a private key
	}
	if !parsed.IsPublic() {
		return nil, errPrivateSecret
	}
	key, ok := parsed.Key.(*ecdsa.PublicKey)
	if !ok || key.Curve != elliptic.P256() || parsed.Algorithm != "" && parsed.Algorithm != string(jose.ES256) || parsed.Use != "" && parsed.Use != "sig" {
		return nil, errJWK
	}
	out := &jwk{id: parsed.KeyID, key: key}
	var more struct {
		ExpiredAt *int64 `json:"expired_at"`
	}
	if json.Unmarshal(text, &more) != nil {
		return nil, errJWK
	}
	if more.ExpiredAt != nil {
		out.expired = time.Unix(*more.ExpiredAt, 0)
	}
	return out, nil
}

func (k *key) setJWK(text string) (err error) {
	k.jwk, err = parseJWK([]byte(text))
	return err
}

// verifyJWT checks the token's signature by the keys with its ID, then its age and that it is about this body.
func (c *Compiled) verifyJWT(d *Delivery, s *scheme, value string, keys []*key, now time.Time, tolerance time.Duration) error {
	// The one algorithm is pinned: none, and a MAC with the public key as its secret, are not even parsed.
	token, err := jose.ParseSignedCompact(value, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil || len(token.Signatures) != 1 {
		return ErrSignatureMalformed
	}
	payload, err := jwtPayload(token, d, keys, now)
	if err != nil {
		return err
	}
	claims := s.claims.lookup(payload)
	if s.timestamp != nil {
		text := claims[s.timeSlot]
		if text == "" {
			return ErrTimestampMissing
		}
		if err := s.checkAge(text, now, tolerance); err != nil {
			return err
		}
	}
	if !hashMatches(claims[s.hashSlot], d.Body) {
		return ErrBodyHash
	}
	return nil
}

func jwtPayload(token *jose.JSONWebSignature, d *Delivery, keys []*key, now time.Time) ([]byte, error) {
	id := token.Signatures[0].Header.KeyID
	result := ErrNoKey
	try := func(k *jwk) []byte {
		if k.id != "" && k.id != id || !k.expired.IsZero() && !now.Before(k.expired) {
			return nil
		}
		result = ErrSignatureMismatch
		payload, err := token.Verify(k.key)
		if err != nil {
			return nil
		}
		return payload
	}
	for _, k := range keys {
		if payload := try(k.jwk); payload != nil {
			return payload, nil
		}
	}
	if d.JWKs == nil || id == "" || len(id) > maxKeyID {
		return nil, result
	}
	text, err := d.JWKs.JWK(id)
	if err != nil {
		return nil, result
	}
	k, err := parseJWK(text)
	if err != nil {
		return nil, result
	}
	if k.id == "" {
		k.id = id
	}
	if payload := try(k); payload != nil {
		return payload, nil
	}
	return nil, result
}

// signJWT makes the token. The secret is a private JWK, or a private key as other schemes take it.
func (s *scheme) signJWT(secret string) (signer, error) {
	key := jose.JSONWebKey{}
	if key.UnmarshalJSON([]byte(secret)) != nil || key.IsPublic() {
		private, err := ecdsaPrivate(secret)
		if err != nil {
			return nil, err
		}
		key = jose.JSONWebKey{Key: private}
	}
	options := new(jose.SignerOptions).WithType("JWT")
	sign, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, options)
	if err != nil {
		return nil, errPrivateKey
	}
	return func(ct *content, now time.Time) ([]byte, error) {
		claims := object{}
		if s.timestamp != nil {
			claims.set([]step{{name: s.timestamp.Name}}, strconv.FormatInt(now.Unix(), 10))
		}
		claims.set([]step{{name: s.bodyHash.Name}}, quote(bodySHA256(ct.d.Body)))
		token, err := sign.Sign([]byte(claims.String()))
		if err != nil {
			return nil, errPrivateKey
		}
		text, err := token.CompactSerialize()
		return []byte(text), err
	}, nil
}
