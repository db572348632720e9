package provider_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"hash/crc32"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/webhook-dedup/caddy-webhook-dedup/provider"
)

func pemOf(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func pkcs8(t testing.TB, key any) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func spki(t testing.TB, key any) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

var ecdsaScheme = provider.Scheme{Algorithm: "ecdsa-p256-sha256", Header: "X-Sig", Encoding: "base64", Content: "{timestamp}{body}",
	Timestamp: &provider.Timestamp{From: "header", Name: "X-Time"}}

// TestECDSAVector is the example of sendgrid-go's helpers/eventwebhook.
func TestECDSAVector(t *testing.T) {
	const public = "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE83T4O/n84iotIvIW4mdBgQ/7dAfSmpqIM8kF9mN1flpVKS3GRqe62gw+2fNNRaINXvVpiglSI8eNEc6wEA3F+g=="
	const signature = "MEUCIGHQVtGj+Y3LkG9fLcxf3qfI10QysgDWmMOVmxG0u6ZUAiEAyBiXDWzM+uOe5W0JuG+luQAbPIqHh89M15TluLtEZtM="
	const body = `[{"email":"hello@world.com","event":"dropped","reason":"Bounced Address","sg_event_id":"ZHJvcC0xMDk5NDkxOS1MUnpYbF9OSFN0T0doUTRrb2ZTbV9BLTA","sg_message_id":"LRzXl_NHStOGhQ4kofSm_A.filterdrecv-p3mdw1-756b745b58-kmzbl-18-5F5FC76C-9.0","smtp-id":"<LRzXl_NHStOGhQ4kofSm_A@ismtpd0039p1iad1.sendgrid.net>","timestamp":1600112492}]` + "\r\n"
	c := scheme(t, ecdsaScheme)
	for _, secret := range []string{public, string(pemOf("PUBLIC KEY", must(base64.StdEncoding.DecodeString(public))))} {
		keys := []provider.Key{key(t, c, secret)}
		d := delivery(body, "X-Sig", signature, "X-Time", "1600112502")
		if err := c.Verify(d, keys, time.Unix(1600112502, 0), 0); err != nil {
			t.Error(err)
		}
		for name, changed := range map[string]string{"line break trimmed": strings.TrimSpace(body), "truncated": body[:100], "empty": ""} {
			d := delivery(changed, "X-Sig", signature, "X-Time", "1600112502")
			if err := c.Verify(d, keys, time.Unix(1600112502, 0), 0); !errors.Is(err, provider.ErrSignatureMismatch) {
				t.Error(name, err)
			}
		}
	}
}

func TestECDSA(t *testing.T) {
	private := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	c := scheme(t, ecdsaScheme)
	keys := []provider.Key{key(t, c, b64(spki(t, must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)).Public()))), key(t, c, b64(spki(t, private.Public())))}
	sec1 := must(x509.MarshalECPrivateKey(private))
	for name, secret := range map[string]string{"PKCS #8": string(pemOf("PRIVATE KEY", pkcs8(t, private))), "SEC 1": string(pemOf("EC PRIVATE KEY", sec1)), "base64": b64(pkcs8(t, private))} {
		d := delivery("{}")
		if err := c.Sign(d, secret, now); err != nil {
			t.Fatal(name, err)
		}
		if err := c.Verify(d, keys, now, 0); err != nil {
			t.Error(name, err)
		}
		if err := c.Verify(d, keys[:1], now, 0); !errors.Is(err, provider.ErrSignatureMismatch) {
			t.Error(name, "other key:", err)
		}
		signature := d.Header.Get("X-Sig")
		for spoiled, want := range map[string]error{
			"":                                     provider.ErrSignatureMalformed,
			"!":                                    provider.ErrSignatureMalformed,
			signature[:20]:                         provider.ErrSignatureMismatch,
			signature[:20] + "\n" + signature[20:]: provider.ErrSignatureMalformed,
			b64(make([]byte, 64)):                  provider.ErrSignatureMismatch,
			b64(make([]byte, 2000)):                provider.ErrSignatureMalformed,
		} {
			d.Header.Set("X-Sig", spoiled)
			if err := c.Verify(d, keys, now, 0); !errors.Is(err, want) {
				t.Errorf("%s, %q: %v, want %v", name, spoiled, err, want)
			}
		}
		if _, err := c.Key(secret); err == nil || strings.Contains(err.Error(), secret) {
			t.Error(name, "as a public key:", err)
		}
	}
	p384 := must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader))
	rsaKey := must(rsa.GenerateKey(rand.Reader, 2048))
	for name, secret := range map[string]string{"P-384": b64(spki(t, p384.Public())), "RSA": b64(spki(t, rsaKey.Public())), "text": "not a key", "PEM": "-----BEGIN PUBLIC KEY-----\nx\n-----END PUBLIC KEY-----"} {
		if _, err := c.Key(secret); err == nil {
			t.Error(name, "accepted")
		}
	}
	for name, secret := range map[string]string{"P-384": b64(pkcs8(t, p384)), "RSA": b64(pkcs8(t, rsaKey)), "public": b64(spki(t, private.Public())), "text": "x"} {
		if err := c.Sign(delivery("{}"), secret, now); err == nil {
			t.Error("signed with", name)
		}
	}
}

// authority is a certificate authority of a test.
type authority struct {
	cert *x509.Certificate
	key  *rsa.PrivateKey
	pool *x509.CertPool
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{key: must(rsa.GenerateKey(rand.Reader, 2048)), pool: x509.NewCertPool()}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Test CA"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour), KeyUsage: x509.KeyUsageCertSign}
	a.cert = must(x509.ParseCertificate(must(x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key))))
	a.pool.AddCert(a.cert)
	return a
}

// issue makes a certificate for public; signed by its own key if by is nil.
func issue(t testing.TB, by *authority, public crypto.PublicKey, self crypto.Signer, name string, from, to time.Time) []byte {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, NotBefore: from, NotAfter: to}
	parent, signer := template, self
	if by != nil {
		parent, signer = by.cert, by.key
	}
	return pemOf("CERTIFICATE", must(x509.CreateCertificate(rand.Reader, template, parent, public, signer)))
}

// certificates are those at URLs.
type certificates map[string]*provider.Certificates

func (c certificates) Certificates(url string) (*provider.Certificates, error) {
	if found := c[url]; found != nil {
		return found, nil
	}
	return nil, errors.New("nothing there")
}

var transmission = provider.Scheme{Algorithm: "rsa-sha256", Header: "X-Sig", Encoding: "base64", Content: "{header:X-Id}|{header:X-Time}|{secret}|{crc32}", Extended: true,
	When: when("header", "X-Algo", "SHA256withRSA"),
	Certificate: &provider.Certificate{URL: provider.Source{From: "header", Name: "X-Cert"}, Pattern: `https://([a-z-]+\.)*pay\.example/[A-Za-z0-9/-]+`,
		Names: []string{`([a-z-]+\.)*pay\.example`}}}

func TestCertificates(t *testing.T) {
	ca, stranger := newAuthority(t), newAuthority(t)
	private := must(rsa.GenerateKey(rand.Reader, 2048))
	good := issue(t, ca, private.Public(), nil, "certs.pay.example", now.Add(-time.Minute), now.Add(time.Hour))
	parse := func(chain []byte) *provider.Certificates { return must(provider.ParseCertificates(chain, ca.pool)) }
	source := certificates{
		"https://api.pay.example/c/good":       parse(good),
		"https://api.pay.example/c/with-ca":    parse(append(good, pemOf("CERTIFICATE", ca.cert.Raw)...)),
		"https://api.pay.example/c/expired":    parse(issue(t, ca, private.Public(), nil, "certs.pay.example", now.Add(-2*time.Minute), now.Add(-time.Minute))),
		"https://api.pay.example/c/not-yet":    parse(issue(t, ca, private.Public(), nil, "certs.pay.example", now.Add(time.Minute), now.Add(time.Hour))),
		"https://api.pay.example/c/self":       parse(issue(t, nil, private.Public(), private, "certs.pay.example", now.Add(-time.Minute), now.Add(time.Hour))),
		"https://api.pay.example/c/stranger":   parse(issue(t, stranger, private.Public(), nil, "certs.pay.example", now.Add(-time.Minute), now.Add(time.Hour))),
		"https://api.pay.example/c/other-name": parse(issue(t, ca, private.Public(), nil, "pay.example.evil.example", now.Add(-time.Minute), now.Add(time.Hour))),
		"https://api.pay.example/c/other-key":  parse(issue(t, ca, must(rsa.GenerateKey(rand.Reader, 2048)).Public(), nil, "certs.pay.example", now.Add(-time.Minute), now.Add(time.Hour))),
		"https://evil.example/pay.example/c":   parse(good),
		"http://api.pay.example/c/good":        parse(good),
	}
	c := scheme(t, transmission)
	const body = `{"id":"WH-1"}`
	content := fmt.Sprintf("id-1|2026-09-21T14:13:20Z|WEBHOOK-7|%d", crc32.ChecksumIEEE([]byte(body)))
	digest := sha256.Sum256([]byte(content))
	signature := b64(must(rsa.SignPKCS1v15(rand.Reader, private, crypto.SHA256, digest[:])))
	keys := []provider.Key{key(t, c, "WEBHOOK-1"), key(t, c, "WEBHOOK-7")}
	const address = "https://api.pay.example/c/good"
	for _, tt := range []struct {
		name, cert string
		change     func(*provider.Delivery)
		want       error
	}{
		{"good", address, nil, nil},
		{"chain", "https://api.pay.example/c/with-ca", nil, nil},
		{"expired", "https://api.pay.example/c/expired", nil, provider.ErrCertificate},
		{"not yet valid", "https://api.pay.example/c/not-yet", nil, provider.ErrCertificate},
		{"self-signed", "https://api.pay.example/c/self", nil, provider.ErrCertificate},
		{"of another authority", "https://api.pay.example/c/stranger", nil, provider.ErrCertificate},
		{"for another name", "https://api.pay.example/c/other-name", nil, provider.ErrCertificate},
		{"with another key", "https://api.pay.example/c/other-key", nil, provider.ErrSignatureMismatch},
		{"of a foreign host", "https://evil.example/pay.example/c", nil, provider.ErrCertificate},
		{"without TLS", "http://api.pay.example/c/good", nil, provider.ErrCertificate},
		{"host with user", "https://api.pay.example@evil.example/c", nil, provider.ErrCertificate},
		{"host with a port", "https://api.pay.example:8443/c/good", nil, provider.ErrCertificate},
		{"upper case", "https://API.PAY.EXAMPLE/c/good", nil, provider.ErrCertificate},
		{"not there", "https://api.pay.example/c/gone", nil, provider.ErrCertificate},
		{"long URL", "https://api.pay.example/" + strings.Repeat("a", 2000), nil, provider.ErrCertificate},
		{"no URL", "", nil, provider.ErrContentMissing},
		{"no source", address, func(d *provider.Delivery) { d.Certificates = nil }, provider.ErrCertificate},
		{"another algorithm", address, func(d *provider.Delivery) { d.Header.Set("X-Algo", "SHA1withRSA") }, provider.ErrSchemeUnknown},
		{"body changed", address, func(d *provider.Delivery) { d.Body = []byte(`{"id":"WH-2"}`) }, provider.ErrSignatureMismatch},
		{"ID changed", address, func(d *provider.Delivery) { d.Header.Set("X-Id", "id-2") }, provider.ErrSignatureMismatch},
		{"short signature", address, func(d *provider.Delivery) { d.Header.Set("X-Sig", signature[:40]) }, provider.ErrSignatureMismatch},
		{"hex signature", address, func(d *provider.Delivery) { d.Header.Set("X-Sig", "zz") }, provider.ErrSignatureMalformed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := delivery(body, "X-Sig", signature, "X-Id", "id-1", "X-Time", "2026-09-21T14:13:20Z", "X-Algo", "SHA256withRSA")
			if tt.cert != "" {
				d.Header.Set("X-Cert", tt.cert)
			}
			d.Certificates = source
			if tt.change != nil {
				tt.change(d)
			}
			for range 2 { // the second time what is known of the chain is used
				if err := c.Verify(d, keys, now, 0); !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
					t.Errorf("%v, want %v", err, tt.want)
				}
			}
		})
	}
	d := delivery(body, "X-Id", "id-1", "X-Time", "2026-09-21T14:13:20Z", "X-Algo", "SHA256withRSA", "X-Cert", address)
	d.Certificates = source
	if err := c.Sign(d, "WEBHOOK-7\n"+string(pemOf("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(private))), now); err != nil || d.Header.Get("X-Sig") != signature {
		t.Error("signed:", err)
	}
	if err := c.Verify(d, keys, now.Add(2*time.Hour), 0); !errors.Is(err, provider.ErrCertificate) {
		t.Error("once the certificate has expired:", err)
	}
	if err := c.Verify(d, keys[:1], now, 0); !errors.Is(err, provider.ErrSignatureMismatch) {
		t.Error("another webhook's ID:", err)
	}
	for _, secret := range []string{"WEBHOOK-7", string(pemOf("PRIVATE KEY", pkcs8(t, must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)))))} {
		if err := c.Sign(d, secret, now); err == nil {
			t.Error("signed without an RSA key")
		}
	}
	if _, err := c.Key(string(pemOf("PRIVATE KEY", pkcs8(t, private)))); err == nil {
		t.Error("a key for a secret")
	}
}

func TestParseCertificates(t *testing.T) {
	ca := newAuthority(t)
	private := must(rsa.GenerateKey(rand.Reader, 2048))
	good := string(issue(t, ca, private.Public(), nil, "a.example", now, now.Add(time.Hour)))
	small := new(rsa.PublicKey)
	*small = rsa.PublicKey{N: new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 1024), big.NewInt(105)), E: 65537}
	huge := &rsa.PublicKey{N: new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 16384), big.NewInt(105)), E: 65537}
	for name, chain := range map[string]string{
		"empty":        "",
		"text":         "<html>not found</html>",
		"oversized":    good + strings.Repeat("\n", provider.MaxCertificates),
		"many":         strings.Repeat(good, 9),
		"key":          string(pemOf("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(private))),
		"text behind":  good + "x",
		"broken DER":   string(pemOf("CERTIFICATE", []byte("x"))),
		"cut off":      good[:len(good)-30],
		"ECDSA":        string(issue(t, ca, must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)).Public(), nil, "a.example", now, now.Add(time.Hour))),
		"1024 bits":    string(issue(t, ca, small, nil, "a.example", now, now.Add(time.Hour))),
		"16,384 bits":  string(issue(t, ca, huge, nil, "a.example", now, now.Add(time.Hour))),
		"DER, not PEM": string(ca.cert.Raw),
	} {
		if _, err := provider.ParseCertificates([]byte(chain), ca.pool); err == nil {
			t.Error(name, "accepted")
		}
	}
	if _, err := provider.ParseCertificates([]byte(good), nil); err != nil {
		t.Error(err)
	}
}

// topicScheme is how messages are signed that any customer could send: the secret names the topic.
func topicScheme(algorithm, version, members string, types ...string) provider.Scheme {
	return provider.Scheme{Algorithm: algorithm, Signature: &provider.Source{From: "json", Name: "Signature"}, Encoding: "base64", Content: "{json_lines:" + members + "}",
		Extended: true, BodyUnsigned: true, When: append(when("json", "SignatureVersion", version), when("json", "Type", types...)...),
		Timestamp: &provider.Timestamp{From: "json", Name: "Timestamp", Format: "rfc3339"}, Pin: &provider.Source{From: "json", Name: "TopicArn"},
		Certificate: &provider.Certificate{URL: provider.Source{From: "json", Name: "SigningCertURL"}, Pattern: `https://sns\.[a-z0-9-]{3,}\.aws\.example/[A-Za-z0-9-]+\.pem`}}
}

func TestTopics(t *testing.T) {
	const notification, confirmation = "Message,MessageId,Subject?,Timestamp,TopicArn,Type", "Message,MessageId,SubscribeURL,Timestamp,Token,TopicArn,Type"
	c := scheme(t, topicScheme("rsa-sha256", "2", notification, "Notification"), topicScheme("rsa-sha1", "1", notification, "Notification"),
		topicScheme("rsa-sha256", "2", confirmation, "SubscriptionConfirmation", "UnsubscribeConfirmation"))
	ca := newAuthority(t)
	private := must(rsa.GenerateKey(rand.Reader, 2048))
	const address = "https://sns.eu-1.aws.example/cert.pem"
	source := certificates{address: must(provider.ParseCertificates(issue(t, ca, private.Public(), nil, "sns.aws.example", now.Add(-time.Hour), now.Add(time.Hour)), ca.pool))}
	sign := func(hash crypto.Hash, lines ...string) string {
		h := hash.New()
		h.Write([]byte(strings.Join(lines, "\n") + "\n"))
		return b64(must(rsa.SignPKCS1v15(rand.Reader, private, hash, h.Sum(nil))))
	}
	message := func(members ...string) *provider.Delivery {
		object := map[string]string{"MessageId": "m1", "TopicArn": "arn:t1", "Timestamp": "2026-09-21T14:13:20.000Z", "Message": "a\nb", "SigningCertURL": address,
			"SignatureVersion": "2", "Type": "Notification"}
		for i := 0; i < len(members); i += 2 {
			object[members[i]] = members[i+1]
		}
		d := delivery(string(must(json.Marshal(object))), "Content-Type", "text/plain; charset=UTF-8")
		d.Certificates = source
		return d
	}
	at := []string{"Timestamp", "2026-09-21T14:13:20.000Z"}
	lines := append([]string{"Message", "a\nb", "MessageId", "m1"}, append(at, "TopicArn", "arn:t1", "Type", "Notification")...)
	withSubject := append([]string{"Message", "a\nb", "MessageId", "m1", "Subject", "s"}, append(at, "TopicArn", "arn:t1", "Type", "Notification")...)
	confirm := func(kind string) []string {
		return append([]string{"Message", "a\nb", "MessageId", "m1", "SubscribeURL", "https://x"}, append(at, "Token", "tok", "TopicArn", "arn:t1", "Type", kind)...)
	}
	keys := []provider.Key{key(t, c, "arn:t0"), key(t, c, "arn:t1")}
	for _, tt := range []struct {
		name string
		d    *provider.Delivery
		want error
	}{
		{"version 2", message("Signature", sign(crypto.SHA256, lines...)), nil},
		{"version 1", message("Signature", sign(crypto.SHA1, lines...), "SignatureVersion", "1"), nil},
		{"subject", message("Signature", sign(crypto.SHA256, withSubject...), "Subject", "s"), nil},
		{"subject added", message("Signature", sign(crypto.SHA256, lines...), "Subject", "s"), provider.ErrSignatureMismatch},
		{"SHA-1 where SHA-256 is announced", message("Signature", sign(crypto.SHA1, lines...)), provider.ErrSignatureMismatch},
		{"version 3", message("Signature", sign(crypto.SHA256, lines...), "SignatureVersion", "3"), provider.ErrSchemeUnknown},
		{"SubscriptionConfirmation", message("Signature", sign(crypto.SHA256, confirm("SubscriptionConfirmation")...), "Type", "SubscriptionConfirmation", "Token", "tok", "SubscribeURL", "https://x"), nil},
		{"UnsubscribeConfirmation", message("Signature", sign(crypto.SHA256, confirm("UnsubscribeConfirmation")...), "Type", "UnsubscribeConfirmation", "Token", "tok", "SubscribeURL", "https://x"), nil},
		{"SubscribeURL changed", message("Signature", sign(crypto.SHA256, confirm("SubscriptionConfirmation")...), "Type", "SubscriptionConfirmation", "Token", "tok", "SubscribeURL", "https://y"), provider.ErrSignatureMismatch},
		{"confirmation without a token", message("Signature", sign(crypto.SHA256, confirm("SubscriptionConfirmation")...), "Type", "SubscriptionConfirmation", "SubscribeURL", "https://x"), provider.ErrContentMissing},
		{"another topic", message("Signature", sign(crypto.SHA256, lines...), "TopicArn", "arn:t2"), provider.ErrForeign},
		{"no topic", message("Signature", sign(crypto.SHA256, lines...), "TopicArn", ""), provider.ErrForeign},
		{"message changed", message("Signature", sign(crypto.SHA256, lines...), "Message", "a\nc"), provider.ErrSignatureMismatch},
		{"foreign certificate", message("Signature", sign(crypto.SHA256, lines...), "SigningCertURL", "https://sns.eu-1.aws.example.evil.example/cert.pem"), provider.ErrCertificate},
		{"certificate in the query", message("Signature", sign(crypto.SHA256, lines...), "SigningCertURL", "https://sns.eu-1.aws.example/x?y=/cert.pem"), provider.ErrCertificate},
		{"stale", message("Signature", sign(crypto.SHA256, lines...), "Timestamp", "2026-09-21T10:13:20.000Z"), provider.ErrStale},
		{"no signature", message(), provider.ErrSignatureMissing},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := c.Verify(tt.d, keys, now, time.Hour); !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
				t.Errorf("%v, want %v", err, tt.want)
			}
			if err := c.CheckHeaders(tt.d.Header); err != nil {
				t.Errorf("headers: %v", err)
			}
		})
	}
	d := message("Signature", "")
	if err := c.Sign(d, "arn:t1\n"+string(pemOf("PRIVATE KEY", pkcs8(t, private))), now); err != nil {
		t.Fatal(err)
	}
	if err := c.Verify(d, keys, now, time.Hour); err != nil {
		t.Error(err)
	}
}

func TestJWT(t *testing.T) {
	private, other := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)), must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	c := scheme(t, provider.Scheme{Algorithm: "jwt-es256", Header: "X-Token", BodyHash: &provider.Source{From: "claim", Name: "body_sha256"},
		Timestamp: &provider.Timestamp{From: "claim", Name: "iat"}})
	const body = "{\n  \"a\": 1\n}"
	raw := base64.RawURLEncoding.EncodeToString
	jwkOf := func(k *ecdsa.PrivateKey, kid, more string) string {
		public := must(k.PublicKey.Bytes())
		return fmt.Sprintf(`{"kty":"EC","crv":"P-256","x":%q,"y":%q,"kid":%q%s}`, raw(public[1:33]), raw(public[33:]), kid, more)
	}
	token := func(header, claims string, k *ecdsa.PrivateKey) string {
		content := raw([]byte(header)) + "." + raw([]byte(claims))
		digest := sha256.Sum256([]byte(content))
		r, s, err := ecdsa.Sign(rand.Reader, k, digest[:])
		if err != nil {
			t.Fatal(err)
		}
		return content + "." + raw(append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...))
	}
	const es256 = `{"alg":"ES256","kid":"k1","typ":"JWT"}`
	claims := `{"iat":1790000000,"body_sha256":"` + hexSHA256(body) + `"}`
	good := token(es256, claims, private)
	confused := raw([]byte(`{"alg":"HS256","kid":"k1"}`)) + "." + raw([]byte(claims))
	m := hmac.New(sha256.New, []byte(jwkOf(private, "k1", "")))
	m.Write([]byte(confused))
	confused += "." + raw(m.Sum(nil))
	source := keySource{"k1": jwkOf(private, "k1", `,"alg":"ES256","use":"sig","expired_at":null`), "gone": jwkOf(private, "gone", `,"expired_at":1789999999`),
		"wrong": jwkOf(private, "other", ""), "broken": "{"}
	for _, tt := range []struct {
		name, token, body string
		want              error
	}{
		{"good", good, body, nil},
		{"claims in another order", token(es256, `{"x":[1],"body_sha256":"`+strings.ToUpper(hexSHA256(body))+`","iat":1790000000}`, private), body, nil},
		{"white space of the body", good, `{"a":1}`, provider.ErrBodyHash},
		{"body with a line break", good, body + "\n", provider.ErrBodyHash},
		{"no hash", token(es256, `{"iat":1790000000}`, private), body, provider.ErrBodyHash},
		{"hash too short", token(es256, `{"iat":1790000000,"body_sha256":"00"}`, private), body, provider.ErrBodyHash},
		{"stale", token(es256, strings.Replace(claims, "1790000000", "1789999699", 1), private), body, provider.ErrStale},
		{"future", token(es256, strings.Replace(claims, "1790000000", "1790000301", 1), private), body, provider.ErrFuture},
		{"no time", token(es256, `{"body_sha256":"`+hexSHA256(body)+`"}`, private), body, provider.ErrTimestampMissing},
		{"fraction", token(es256, strings.Replace(claims, "1790000000", "1790000000.5", 1), private), body, provider.ErrTimestampMalformed},
		{"claims are no JSON", token(es256, `x`, private), body, provider.ErrTimestampMissing},
		{"another key", token(es256, claims, other), body, provider.ErrSignatureMismatch},
		{"unknown key", token(`{"alg":"ES256","kid":"k2"}`, claims, private), body, provider.ErrNoKey},
		{"no key ID", token(`{"alg":"ES256"}`, claims, private), body, provider.ErrNoKey},
		{"expired key", token(`{"alg":"ES256","kid":"gone"}`, claims, private), body, provider.ErrNoKey},
		{"key under another ID", token(`{"alg":"ES256","kid":"wrong"}`, claims, private), body, provider.ErrNoKey},
		{"broken key", token(`{"alg":"ES256","kid":"broken"}`, claims, private), body, provider.ErrNoKey},
		{"long key ID", token(`{"alg":"ES256","kid":"`+strings.Repeat("k", 300)+`"}`, claims, private), body, provider.ErrNoKey},
		{"key in the header", token(`{"alg":"ES256","kid":"k1","jwk":`+jwkOf(other, "k1", "")+`}`, claims, other), body, provider.ErrSignatureMismatch},
		{"none", raw([]byte(`{"alg":"none","kid":"k1"}`)) + "." + raw([]byte(claims)) + ".", body, provider.ErrSignatureMalformed},
		{"none with a signature", token(`{"alg":"none","kid":"k1"}`, claims, private), body, provider.ErrSignatureMalformed},
		{"HS256 with the public key", confused, body, provider.ErrSignatureMalformed},
		{"ES384", token(`{"alg":"ES384","kid":"k1"}`, claims, private), body, provider.ErrSignatureMalformed},
		{"signature cut off", good[:len(good)-10], body, provider.ErrSignatureMismatch},
		{"two parts", good[:strings.LastIndexByte(good, '.')], body, provider.ErrSignatureMalformed},
		{"text", "x", body, provider.ErrSignatureMalformed},
		{"JSON serialisation", `{"payload":"` + raw([]byte(claims)) + `"}`, body, provider.ErrSignatureMalformed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := delivery(tt.body, "X-Token", tt.token)
			d.JWKs = source
			if err := c.Verify(d, nil, now, 300*time.Second); !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
				t.Errorf("%v, want %v", err, tt.want)
			}
			if tt.name == "good" {
				if err := c.Verify(d, nil, now.Add(24*time.Hour), -1); err != nil {
					t.Error("any age:", err)
				}
			}
		})
	}
	d := delivery(body, "X-Token", good)
	for secret, want := range map[string]error{jwkOf(private, "k1", ""): nil, jwkOf(private, "", ""): nil, jwkOf(private, "k2", ""): provider.ErrNoKey, jwkOf(other, "k1", ""): provider.ErrSignatureMismatch,
		jwkOf(private, "k1", `,"expired_at":1700000000`): provider.ErrNoKey} {
		if err := c.Verify(d, []provider.Key{key(t, c, secret)}, now, 0); !errors.Is(err, want) || (err == nil) != (want == nil) {
			t.Errorf("configured: %v, want %v", err, want)
		}
	}
	if err := c.Verify(d, nil, now, 0); !errors.Is(err, provider.ErrNoKey) {
		t.Error(err)
	}
	privateJWK := jwkOf(private, "k1", `,"d":"`+raw(must(private.Bytes()))+`"`)
	for name, secret := range map[string]string{"private": privateJWK, "MAC": `{"kty":"oct","k":"c2VjcmV0"}`, "use": jwkOf(private, "", `,"use":"enc"`), "alg": jwkOf(private, "", `,"alg":"HS256"`),
		"text": "x", "huge": jwkOf(private, "", `,"x5t":"`+strings.Repeat("a", 9000)+`"`), "not on the curve": `{"kty":"EC","crv":"P-256","x":"AAAA","y":"AAAA"}`} {
		if _, err := c.Key(secret); err == nil {
			t.Error(name, "accepted as a key")
		}
	}
	for name, secret := range map[string]string{"JWK": privateJWK, "PEM": string(pemOf("PRIVATE KEY", pkcs8(t, private)))} {
		d := delivery(body)
		if err := c.Sign(d, secret, now); err != nil {
			t.Fatal(name, err)
		}
		if err := c.Verify(d, []provider.Key{key(t, c, jwkOf(private, "", ""))}, now, 0); err != nil {
			t.Error(name, err)
		}
	}
	if err := c.Sign(delivery(body), jwkOf(private, "k1", ""), now); err == nil {
		t.Error("signed with a public key")
	}
}

type keySource map[string]string

func (k keySource) JWK(kid string) ([]byte, error) {
	if found, ok := k[kid]; ok {
		return []byte(found), nil
	}
	return nil, errors.New("no such key")
}
