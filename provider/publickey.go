package provider

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"strings"
)

var (
	errKeyAsText   = errors.New("secret is a key; the provider's key is in its certificate")
	errECDSAPublic = errors.New("secret is not a P-256 public key in PEM, or in base64 of its DER")
	errPrivateKey  = errors.New("secret is not a private key in PEM, or in base64 of its PKCS #8, for this scheme")
)

func isPEM(s string) bool { return strings.Contains(s, "-----BEGIN ") }

// derOf is the DER of a key in PEM or in base64.
func derOf(text string) ([]byte, bool) {
	text = strings.TrimSpace(text)
	if isPEM(text) {
		block, _ := pem.Decode([]byte(text))
		if block == nil {
			return nil, false
		}
		return block.Bytes, true
	}
	der, err := base64.StdEncoding.DecodeString(text)
	return der, err == nil
}

func (k *key) setECDSA(text string) error {
	der, ok := derOf(text)
	if !ok {
		return errECDSAPublic
	}
	if _, err := parsePrivate(der); err == nil {
		return errPrivateSecret
	}
	public, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return errECDSAPublic
	}
	if k.ecdsa, ok = public.(*ecdsa.PublicKey); !ok || k.ecdsa.Curve != elliptic.P256() {
		return errECDSAPublic
	}
	return nil
}

// parsePrivate parses a private key in any of the usual forms.
func parsePrivate(der []byte) (crypto.Signer, error) {
	if k, err := x509.ParsePKCS8PrivateKey(der); err == nil {
		if signer, ok := k.(crypto.Signer); ok {
			return signer, nil
		}
	}
	if k, err := x509.ParseECPrivateKey(der); err == nil {
		return k, nil
	}
	k, err := x509.ParsePKCS1PrivateKey(der)
	if err != nil {
		return nil, errPrivateKey
	}
	return k, nil
}

// privateKey is the private key in a secret, for signing. What stands before a PEM is the text that belongs to the key: a
// scheme with a certificate may sign one, or be pinned to one.
func privateKey(secret string) (key crypto.Signer, text string, err error) {
	if i := strings.Index(secret, "-----BEGIN "); i >= 0 {
		secret, text = secret[i:], strings.TrimSpace(secret[:i])
	}
	der, ok := derOf(secret)
	if !ok {
		return nil, "", errPrivateKey
	}
	key, err = parsePrivate(der)
	return key, text, err
}

func ecdsaPrivate(secret string) (*ecdsa.PrivateKey, error) {
	k, _, err := privateKey(secret)
	if err != nil {
		return nil, err
	}
	private, ok := k.(*ecdsa.PrivateKey)
	if !ok || private.Curve != elliptic.P256() {
		return nil, errPrivateKey
	}
	return private, nil
}

func rsaPrivate(secret string) (*rsa.PrivateKey, string, error) {
	k, text, err := privateKey(secret)
	if err != nil {
		return nil, "", err
	}
	private, ok := k.(*rsa.PrivateKey)
	if !ok {
		return nil, "", errPrivateKey
	}
	return private, text, nil
}
