// Package testsecrets has, for tests, secrets of the form that each provider of the catalogue takes.
package testsecrets

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"math/big"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/webhook-dedup/caddy-webhook-dedup/provider"
)

// Pair are the two sides of a secret.
type Pair struct {
	// Sign is the secret that signs, Verify the one that verifies.
	Sign, Verify string
	// Certificates go with them, nil where there are none.
	Certificates provider.CertificateSource
	// PEM is the certificate, for a file.
	PEM []byte
}

func same(secret string) Pair { return Pair{Sign: secret, Verify: secret} }

// credentials are, for the entries for which not any text will do, a right pair and a wrong one.
var credentials = sync.OnceValue(func() map[string][2]Pair {
	whsec := [2]Pair{same("whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"), same("whsec_d3Jvbmcgd3Jvbmcgd3Jvbmcgd3Jvbmc=")}
	basic := [2]Pair{same("user:a pass: word"), same("user:wrong")}
	const topic, webhook = "arn:aws:sns:eu-central-1:123456789012:orders", "1JE4291016473214C"
	return map[string][2]Pair{
		"adyen":             {same("44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056"), same("00")},
		"aws-sns":           {rsaPair("sns.amazonaws.com", topic), rsaPair("sns.amazonaws.com", topic)},
		"braintree":         {same("integration_public_key|integration_private_key"), same("integration_public_key|wrong")},
		"chargebee":         basic,
		"clerk":             whsec,
		"discord":           {ed25519Pair("0123456789abcdef0123456789abcdef"), ed25519Pair("fedcba9876543210fedcba9876543210")},
		"openai":            whsec,
		"paypal":            {rsaPair("messageverificationcerts.paypal.com", webhook), rsaPair("messageverificationcerts.paypal.com", webhook)},
		"plaid":             {jwkPair(), jwkPair()},
		"postmark":          basic,
		"resend":            whsec,
		"sendgrid":          {ecdsaPair(), ecdsaPair()},
		"standard-webhooks": whsec,
		"svix":              whsec,
	}
})

// Of is a pair that is right for the provider.
func Of(id string) Pair {
	if p, ok := credentials()[id]; ok {
		return p[0]
	}
	return same("a secret of " + id)
}

// WrongOf is another one of the right form.
func WrongOf(id string) Pair {
	if p, ok := credentials()[id]; ok {
		return p[1]
	}
	return same("a wrong one")
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func ed25519Pair(seed string) Pair {
	public := ed25519.NewKeyFromSeed([]byte(seed)).Public().(ed25519.PublicKey)
	return Pair{Sign: hex.EncodeToString([]byte(seed)), Verify: hex.EncodeToString(public)}
}

func ecdsaPair() Pair {
	private := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	return Pair{
		Sign:   base64.StdEncoding.EncodeToString(must(x509.MarshalPKCS8PrivateKey(private))),
		Verify: base64.StdEncoding.EncodeToString(must(x509.MarshalPKIXPublicKey(&private.PublicKey))),
	}
}

func jwkPair() Pair {
	private := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	key := jose.JSONWebKey{Key: private, KeyID: "bfbd5111-8e33-4643-8ced-b2e642a72f3c", Algorithm: "ES256", Use: "sig"}
	return Pair{Sign: string(must(key.MarshalJSON())), Verify: string(must(key.Public().MarshalJSON()))}
}

// rsaPair has a certificate for the name; the text is what the secret is, the signer's stands before its key.
func rsaPair(name, text string) Pair {
	private := must(rsa.GenerateKey(rand.Reader, 2048))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Unix(0, 0), NotAfter: time.Now().AddDate(10, 0, 0), IsCA: true, BasicConstraintsValid: true,
	}
	der := must(x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private))
	roots := x509.NewCertPool()
	roots.AddCert(must(x509.ParseCertificate(der)))
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	chain := must(provider.ParseCertificates(certificate, roots))
	pkcs8 := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: must(x509.MarshalPKCS8PrivateKey(private))})
	return Pair{Sign: text + "\n" + string(pkcs8), Verify: text, Certificates: oneChain{chain}, PEM: certificate}
}

// oneChain has the chain for every address.
type oneChain struct{ chain *provider.Certificates }

func (c oneChain) Certificates(string) (*provider.Certificates, error) { return c.chain, nil }
