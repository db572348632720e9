package provider_test

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
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/webhook-dedup/caddy-webhook-dedup/provider"
)

// keyPair is the secret that signs, the one that verifies, and the certificate that goes with them.
type keyPair struct {
	sign, verify string
	certificates provider.CertificateSource
}

func same(secret string) keyPair { return keyPair{sign: secret, verify: secret} }

// credentials are, for the entries for which not any text will do, a right pair and a wrong one.
var credentials = sync.OnceValue(func() map[string][2]keyPair {
	whsec := [2]keyPair{same("whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"), same("whsec_d3Jvbmcgd3Jvbmcgd3Jvbmcgd3Jvbmc=")}
	basic := [2]keyPair{same("user:a pass: word"), same("user:wrong")}
	const topic, webhook = "arn:aws:sns:eu-central-1:123456789012:orders", "1JE4291016473214C"
	return map[string][2]keyPair{
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

func pairOf(id string) keyPair {
	if p, ok := credentials()[id]; ok {
		return p[0]
	}
	return same("a secret of " + id)
}

func wrongPairOf(id string) keyPair {
	if p, ok := credentials()[id]; ok {
		return p[1]
	}
	return same("a wrong one")
}

// secretOf is the secret that verifies.
func secretOf(id string) string { return pairOf(id).verify }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func ed25519Pair(seed string) keyPair {
	public := ed25519.NewKeyFromSeed([]byte(seed)).Public().(ed25519.PublicKey)
	return keyPair{sign: hex.EncodeToString([]byte(seed)), verify: hex.EncodeToString(public)}
}

func ecdsaPair() keyPair {
	private := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	return keyPair{
		sign:   base64.StdEncoding.EncodeToString(must(x509.MarshalPKCS8PrivateKey(private))),
		verify: base64.StdEncoding.EncodeToString(must(x509.MarshalPKIXPublicKey(&private.PublicKey))),
	}
}

func jwkPair() keyPair {
	private := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	key := jose.JSONWebKey{Key: private, KeyID: "bfbd5111-8e33-4643-8ced-b2e642a72f3c", Algorithm: "ES256", Use: "sig"}
	return keyPair{sign: string(must(key.MarshalJSON())), verify: string(must(key.Public().MarshalJSON()))}
}

// rsaPair has a certificate for the name; the text is what the secret is, the signer's stands before its key.
func rsaPair(name, text string) keyPair {
	private := must(rsa.GenerateKey(rand.Reader, 2048))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: now.Add(-30 * day), NotAfter: now.Add(30 * day), IsCA: true, BasicConstraintsValid: true,
	}
	der := must(x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private))
	roots := x509.NewCertPool()
	roots.AddCert(must(x509.ParseCertificate(der)))
	chain := must(provider.ParseCertificates(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), roots))
	pkcs8 := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: must(x509.MarshalPKCS8PrivateKey(private))})
	return keyPair{sign: text + "\n" + string(pkcs8), verify: text, certificates: oneChain{chain}}
}

// oneChain has the chain for every address.
type oneChain struct{ chain *provider.Certificates }

func (c oneChain) Certificates(string) (*provider.Certificates, error) { return c.chain, nil }

// publicURL is what the tests' endpoints are registered as.
const publicURL = "https://hooks.example.com/hooks/1"

// example is the provider's example event as the module hands it over.
func example(c *provider.Compiled, id string, at time.Time) provider.Delivery {
	d := c.Spec().Example(id, at)
	d.URL = publicURL
	d.Certificates = pairOf(c.Spec().ID).certificates
	return d
}

// signed returns an example of the provider, signed.
func signed(t testing.TB, c *provider.Compiled, id string) provider.Delivery {
	t.Helper()
	d := example(c, id, now)
	sign(t, c, &d, now)
	return d
}

func sign(t testing.TB, c *provider.Compiled, d *provider.Delivery, at time.Time) {
	t.Helper()
	if err := c.Sign(d, pairOf(c.Spec().ID).sign, at); err != nil {
		t.Fatal(err)
	}
}

// verify checks d with the right secret and the provider's tolerance.
func verify(t testing.TB, c *provider.Compiled, d *provider.Delivery, at time.Time) error {
	t.Helper()
	tolerance, _ := c.DefaultTolerance()
	return c.Verify(d, []provider.Key{key(t, c, secretOf(c.Spec().ID))}, at, tolerance)
}

// identity is what names the event, or the first of a batch; empty if nothing does.
func identity(t testing.TB, c *provider.Compiled, d *provider.Delivery) []string {
	t.Helper()
	if elements, err := c.Elements(d); err == nil {
		if len(elements) == 0 {
			t.Fatal("a batch without elements")
		}
		return elements[0].Parts
	}
	id, _ := c.Identify(d)
	return id.Parts
}
