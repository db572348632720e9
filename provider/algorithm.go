package provider

import (
	"crypto"
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
	kindHash
	kindEd25519
	kindECDSA
	kindRSA
	kindJWT
	kindToken
	kindBasic
)

// algorithm is one way to authenticate a delivery.
type algorithm struct {
	name      string
	kind      algorithmKind
	hash      func() hash.Hash // of an HMAC or a plain hash
	digest    crypto.Hash      // of a public key's signature
	size      int              // of a signature, in bytes; 0: it varies
	tries     int              // signatures of one header that are tried
	catalogue bool             // needs more than a user's scheme can say
}

// maxSignature is the largest size of a signature, that of an RSA key of 8192 bits.
const maxSignature = 1024

var algorithms = []algorithm{
	{name: "hmac-sha1", hash: sha1.New, size: sha1.Size, tries: maxHMACs},
	{name: "hmac-sha256", hash: sha256.New, size: sha256.Size, tries: maxHMACs},
	{name: "hmac-sha512", hash: sha512.New, size: sha512.Size, tries: maxHMACs},
	{name: "sha256", kind: kindHash, hash: sha256.New, size: sha256.Size, tries: maxHMACs, catalogue: true},
	{name: "ed25519", kind: kindEd25519, size: ed25519.SignatureSize, tries: maxPublicKeySignatures},
	{name: "ecdsa-p256-sha256", kind: kindECDSA, digest: crypto.SHA256, tries: maxPublicKeySignatures},
	{name: "rsa-sha1", kind: kindRSA, digest: crypto.SHA1, tries: 1, catalogue: true},
	{name: "rsa-sha256", kind: kindRSA, digest: crypto.SHA256, tries: 1, catalogue: true},
	{name: "jwt-es256", kind: kindJWT, tries: 1, catalogue: true},
	{name: "token", kind: kindToken, tries: 1},
	{name: "basic", kind: kindBasic, tries: 1},
}

// Algorithms are the values of [Scheme.Algorithm] that an own provider may use.
func Algorithms() []string {
	var names []string
	for _, a := range algorithms {
		if !a.catalogue {
			names = append(names, a.name)
		}
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

// maxFixed is the largest size of an algorithm.
const maxFixed = 64

// isToken reports whether the header is the secret itself, in whatever form.
func (a algorithm) isToken() bool { return a.kind == kindToken || a.kind == kindBasic }

// isMAC reports whether a secret and the content make the signature.
func (a algorithm) isMAC() bool { return a.kind == kindHMAC || a.kind == kindHash }

// decode decodes text into dst and reports whether it is exactly that long. Nothing is skipped: a line break, which
// encoding/base64 would ignore, makes the text too long.
func decode(encoding string, dst []byte, text string) bool {
	var src [2 * maxFixed]byte
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
	var out [maxFixed + 4]byte
	n, err := enc.Decode(out[:], src)
	if n > len(dst) {
		return n, err
	}
	return copy(dst, out[:n]), err
}

// decodeVarying decodes a signature of any length, nil if it is not in its encoding, empty or too long.
func decodeVarying(encoding, text string) []byte {
	if text == "" || len(text) > 2*maxSignature || strings.ContainsAny(text, "\r\n") {
		return nil // encoding/base64 would ignore line breaks
	}
	var out []byte
	var err error
	switch {
	case encoding == encodingBase64:
		out, err = strictBase64.DecodeString(text)
	case encoding == encodingBase64URL && strings.HasSuffix(text, "="):
		out, err = strictBase64URL.DecodeString(text)
	case encoding == encodingBase64URL:
		out, err = strictRawURL.DecodeString(text)
	default:
		out, err = hex.DecodeString(text)
	}
	if err != nil || len(out) == 0 || len(out) > maxSignature {
		return nil
	}
	return out
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

// digestOf is the hash of a message that a public key's signature is about.
func (a algorithm) digestOf(message []byte) []byte {
	h := a.digest.New()
	h.Write(message)
	return h.Sum(nil)
}
