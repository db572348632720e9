package provider

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"time"
)

// verify checks one signed content: a delivery or an element of it.
func (ct *content) verify(keys []*key, now time.Time, tolerance time.Duration) error {
	s := ct.s
	var err error
	if ct.timestamp, err = ct.c.timestamp(ct.d, s, s.text(ct.by, ct.d, 0)); err != nil {
		return err
	}
	if err := s.checkAge(ct.timestamp, now, tolerance); err != nil {
		return err
	}
	// Whatever can't be decoded is refused before the body is hashed.
	decodable := false
	for i := range s.texts() {
		w := s.signatures(s.text(ct.by, ct.d, i))
		if decodable = w.next() != nil; decodable {
			break
		}
	}
	if !decodable {
		return ErrSignatureMalformed
	}
	var public *rsa.PublicKey
	if s.certificate != nil {
		if public, err = s.certificate.publicKey(ct.c, ct.d, now); err != nil {
			return err
		}
	}
	urls := s.urls(ct.d)
	for i := range urls {
		if ct.url = urls[i]; i > 0 && ct.url == "" {
			break
		}
		ok := false
		switch s.algorithm.kind {
		case kindRSA:
			ok, err = ct.verifyRSA(public, keys)
		case kindECDSA, kindEd25519:
			ok, err = ct.verifyPublic(keys)
		default:
			ok, err = ct.verifyMAC(keys)
		}
		if ok || err != nil {
			return err
		}
	}
	return ErrSignatureMismatch
}

// pinned are the keys whose text is the value.
func pinned(keys []*key, value string) []*key {
	got := sha256.Sum256([]byte(value))
	out := keys[:0]
	for _, k := range keys {
		// Hashes have one length, so that comparing them doesn't tell the text's.
		if want := sha256.Sum256([]byte(k.text)); value != "" && subtle.ConstantTimeCompare(got[:], want[:]) == 1 {
			out = append(out, k)
		}
	}
	return out
}

func bodySHA256(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// hashMatches reports whether text is the body's SHA-256 in hex.
func hashMatches(text string, body []byte) bool {
	var want [sha256.Size]byte
	if !decode(encodingHex, want[:], text) {
		return false
	}
	got := sha256.Sum256(body)
	return subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

func (k *Key) scheme(c *Compiled, index int) *key {
	if k.by != c {
		return nil
	}
	return k.prepared[index]
}

func (ct *content) verifyMAC(keys []*key) (bool, error) {
	for _, k := range keys {
		if ok, err := ct.verifyKey(k); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

func (ct *content) verifyKey(k *key) (bool, error) {
	m := k.macs.Get().(*mac)
	defer k.macs.Put(m)
	ct.secret = k.text
	if err := ct.sum(m); err != nil {
		return false, err
	}
	for i := range ct.s.texts() {
		for all := ct.s.signatures(ct.s.text(ct.by, ct.d, i)); ; {
			signature := all.next()
			if signature == nil {
				break
			}
			if hmac.Equal(signature, m.sum) {
				return true, nil
			}
		}
	}
	return false, nil
}

// sum puts the MAC of the signed content into m.sum.
func (ct *content) sum(m *mac) error {
	m.Reset()
	if err := ct.each(m.writeString, func(b []byte) { m.Write(b) }); err != nil {
		return err
	}
	m.sum = m.Sum(m.sum[:0])
	return nil
}

// verifyPublic checks by keys that are configured.
func (ct *content) verifyPublic(keys []*key) (bool, error) {
	message, err := ct.message()
	if err != nil {
		return false, err
	}
	digest := sha256.Sum256(message)
	for all := ct.s.signatures(ct.s.text(ct.by, ct.d, 0)); ; {
		signature := all.next()
		if signature == nil {
			return false, nil
		}
		for _, k := range keys {
			if ct.s.algorithm.kind == kindECDSA && ecdsa.VerifyASN1(k.ecdsa, digest[:], signature) ||
				ct.s.algorithm.kind == kindEd25519 && ed25519.Verify(k.public, message, signature) {
				return true, nil
			}
		}
	}
}

// verifyRSA checks by the certificate's key; the keys are texts that may be signed.
func (ct *content) verifyRSA(public *rsa.PublicKey, keys []*key) (bool, error) {
	all := ct.s.signatures(ct.s.text(ct.by, ct.d, 0))
	signature := all.next()
	for _, k := range keys {
		ct.secret = k.text
		message, err := ct.message()
		if err != nil {
			return false, err
		}
		if rsa.VerifyPKCS1v15(public, ct.s.algorithm.digest, ct.s.algorithm.digestOf(message), signature) == nil {
			return true, nil
		}
		if !ct.s.content.has(segmentSecret) {
			break
		}
	}
	return false, nil
}

// message is the signed content in one piece, for algorithms that need it so. It is the body itself where nothing else is signed.
func (ct *content) message() ([]byte, error) {
	if len(ct.s.content) == 1 && ct.s.content[0].kind == segmentBody {
		return ct.d.Body, nil
	}
	out := make([]byte, 0, len(ct.d.Body)+256)
	err := ct.each(
		func(t string) { out = append(out, t...) },
		func(b []byte) { out = append(out, b...) })
	return out, err
}

func (s *scheme) verifyToken(value string, keys []*key) error {
	text, ok := strings.CutPrefix(value, s.prefix)
	if s.algorithm.kind == kindBasic {
		text, ok = basicCredentials(value)
	}
	if !ok || text == "" {
		return ErrSignatureMalformed
	}
	// Hashes have one length, so that comparing them doesn't tell the token's.
	got := sha256.Sum256([]byte(text))
	match := 0
	for _, k := range keys {
		match |= subtle.ConstantTimeCompare(got[:], k.token[:])
	}
	if match == 0 {
		return ErrSignatureMismatch
	}
	return nil
}

// basicCredentials is user:password of an Authorization header.
func basicCredentials(value string) (string, bool) {
	scheme, encoded, ok := strings.Cut(value, " ")
	if !ok || !strings.EqualFold(scheme, "Basic") {
		return "", false
	}
	decoded, err := base64.StdEncoding.DecodeString(strings.TrimLeft(encoded, " "))
	return string(decoded), err == nil
}
