package provider

import (
	"crypto/ed25519"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash"
	"slices"
	"strings"
)

type algorithmKind int

const (
	kindHMAC algorithmKind = iota
	kindEd25519
	kindToken
)

// algorithm is one way to authenticate a delivery.
type algorithm struct {
	name  string
	kind  algorithmKind
	hash  func() hash.Hash // of an HMAC
	size  int              // of a signature, in bytes
	tries int              // signatures of one header that are tried
}

// maxSignature is the largest size of an algorithm.
const maxSignature = 64

var algorithms = []algorithm{
	{name: "hmac-sha1", hash: sha1.New, size: sha1.Size, tries: maxHMACs},
	{name: "hmac-sha256", hash: sha256.New, size: sha256.Size, tries: maxHMACs},
	{name: "hmac-sha512", hash: sha512.New, size: sha512.Size, tries: maxHMACs},
	{name: "ed25519", kind: kindEd25519, size: ed25519.SignatureSize, tries: maxPublicKeySignatures},
	{name: "token", kind: kindToken, tries: 1},
}

// Algorithms are the allowed values of [Scheme.Algorithm].
func Algorithms() []string {
	names := make([]string, len(algorithms))
	for i, a := range algorithms {
		names[i] = a.name
	}
	return names
}

func algorithmNamed(name string) (algorithm, error) {
	for _, a := range algorithms {
		if a.name == name {
			return a, nil
		}
	}
	return algorithm{}, fmt.Errorf("algorithm %q is not known, allowed are %s", name, strings.Join(Algorithms(), ", "))
}

const (
	encodingRaw       = "raw"
	encodingHex       = "hex"
	encodingBase64    = "base64"
	encodingBase64URL = "base64url"
)

// encodingNamed returns name, or the fallback for the empty one, if it is among the allowed.
func encodingNamed(field, name, fallback string, allowed ...string) (string, error) {
	if name == "" {
		return fallback, nil
	}
	if !slices.Contains(allowed, name) {
		return "", fmt.Errorf("%s %q is not known, allowed are %s", field, name, strings.Join(allowed, ", "))
	}
	return name, nil
}

var (
	strictBase64    = base64.StdEncoding.Strict()
	strictBase64URL = base64.URLEncoding.Strict()
	strictRawURL    = base64.RawURLEncoding.Strict()
)

// decode decodes text into dst and reports whether it is exactly that long. Nothing is skipped: a line break, which
// encoding/base64 would ignore, makes the text too long.
func decode(encoding string, dst []byte, text string) bool {
	var src [2 * maxSignature]byte
	if len(text) > len(src) {
		return false
	}
	n := copy(src[:], text)
	var err error
	switch {
	case encoding == encodingHex && n == hex.EncodedLen(len(dst)):
		n, err = hex.Decode(dst, src[:n])
	case encoding == encodingBase64 && n == strictBase64.EncodedLen(len(dst)):
		n, err = decodeBase64(strictBase64, dst, src[:n])
	case encoding == encodingBase64URL && n == strictBase64URL.EncodedLen(len(dst)) && src[n-1] == '=':
		n, err = decodeBase64(strictBase64URL, dst, src[:n])
	case encoding == encodingBase64URL && n == strictRawURL.EncodedLen(len(dst)):
		n, err = decodeBase64(strictRawURL, dst, src[:n])
	default:
		return false
	}
	return err == nil && n == len(dst)
}

// decodeBase64 decodes through a buffer of its own, because the decoder may write a few bytes more than the result has.
func decodeBase64(enc *base64.Encoding, dst, src []byte) (int, error) {
	var out [maxSignature + 4]byte
	n, err := enc.Decode(out[:], src)
	if n > len(dst) {
		return n, err
	}
	return copy(dst, out[:n]), err
}

func encode(encoding string, signature []byte) string {
	switch encoding {
	case encodingBase64:
		return base64.StdEncoding.EncodeToString(signature)
	case encodingBase64URL:
		return base64.RawURLEncoding.EncodeToString(signature)
	}
	return hex.EncodeToString(signature)
}
