package provider_test

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/webhook-dedup/caddy-webhook-dedup/provider"
)

var (
	seconds = strconv.FormatInt(now.Unix(), 10)
	millis  = seconds + "000"
	rfc     = now.UTC().Format(time.RFC3339)
)

func hexMAC(id, content string) string {
	return hex.EncodeToString(sum(sha256.New, secretOf(id), content))
}

func b64MAC(id, content string) string { return b64(sum(sha256.New, secretOf(id), content)) }

// signatureTraps are headers over the body {"a":1}, made by hand.
var signatureTraps = []struct {
	name    string
	headers []string
	want    error
}{
	{"bitbucket/SHA-256 under X-Hub-Signature", []string{"X-Hub-Signature", "sha256=" + hexMAC("bitbucket", trapBody)}, nil},
	{"bitbucket/SHA-1 is refused", []string{"X-Hub-Signature", "sha1=" + hex.EncodeToString(sum(sha1.New, secretOf("bitbucket"), trapBody))}, provider.ErrSignatureMalformed},
	{"jira/the method stands before the signature", []string{"X-Hub-Signature", "sha256=" + hexMAC("jira", trapBody)}, nil},
	{"intercom/SHA-1 under X-Hub-Signature", []string{"X-Hub-Signature", "sha1=" + hex.EncodeToString(sum(sha1.New, secretOf("intercom"), trapBody))}, nil},
	{"intercom/SHA-256 is refused", []string{"X-Hub-Signature", "sha256=" + hexMAC("intercom", trapBody)}, provider.ErrSignatureMalformed},
	{"meta/SHA-1 alone is refused", []string{"X-Hub-Signature", "sha1=" + hex.EncodeToString(sum(sha1.New, secretOf("meta"), trapBody))}, provider.ErrSignatureMissing},
	{"vercel/SHA-1 without a prefix", []string{"X-Vercel-Signature", hex.EncodeToString(sum(sha1.New, secretOf("vercel"), trapBody))}, nil},
	{"typeform/base64 with sha256= prefix", []string{"Typeform-Signature", "sha256=" + b64MAC("typeform", trapBody)}, nil},
	{"typeform/hex is refused", []string{"Typeform-Signature", "sha256=" + hexMAC("typeform", trapBody)}, provider.ErrSignatureMalformed},
	{"woocommerce/base64", []string{"X-WC-Webhook-Signature", b64MAC("woocommerce", trapBody)}, nil},
	{"line/base64", []string{"X-Line-Signature", b64MAC("line", trapBody)}, nil},
	{"xero/base64", []string{"X-Xero-Signature", b64MAC("xero", trapBody)}, nil},
	{"xero/hex is refused", []string{"X-Xero-Signature", hexMAC("xero", trapBody)}, provider.ErrSignatureMalformed},
	{"mollie/next generation has sha256= and hex", []string{"X-Mollie-Signature", "sha256=" + hexMAC("mollie", trapBody)}, nil},

	{"paddle/semicolon list", []string{"Paddle-Signature", "ts=" + seconds + ";h1=" + hexMAC("paddle", seconds+":"+trapBody)}, nil},
	{"paddle/semicolon list, two h1, the first matches", []string{"Paddle-Signature", "ts=" + seconds + ";h1=" + hexMAC("paddle", seconds+":"+trapBody) + ";h1=" + zeros}, nil},
	{"paddle/semicolon list, two h1, the last matches", []string{"Paddle-Signature", "ts=" + seconds + ";h1=" + zeros + ";h1=" + hexMAC("paddle", seconds+":"+trapBody)}, nil},
	{"paddle/comma list is refused", []string{"Paddle-Signature", "ts=" + seconds + ",h1=" + hexMAC("paddle", seconds+":"+trapBody)}, provider.ErrTimestampMalformed},
	{"pagerduty/two v1 during a rotation", []string{"X-PagerDuty-Signature", "v1=" + zeros + ",v1=" + hexMAC("pagerduty", trapBody)}, nil},
	{"circleci/a newer version beside v1", []string{"Circleci-Signature", "v1=" + hexMAC("circleci", trapBody) + ",v2=" + zeros}, nil},
	{"circleci/only an unknown version", []string{"Circleci-Signature", "v2=" + hexMAC("circleci", trapBody)}, provider.ErrSignatureMalformed},
	{"calendly/t and v1", []string{"Calendly-Webhook-Signature", "t=" + seconds + ",v1=" + hexMAC("calendly", seconds+"."+trapBody)}, nil},
	{"gethook/like Stripe", []string{"Webhook-Signature", "t=" + seconds + ",v1=" + hexMAC("gethook", seconds+"."+trapBody)}, nil},
	{"mux/seconds", []string{"Mux-Signature", "t=" + seconds + ",v1=" + hexMAC("mux", seconds+"."+trapBody)}, nil},
	{"recurly/no names, milliseconds", []string{"Recurly-Signature", millis + "," + hexMAC("recurly", millis+"."+trapBody)}, nil},
	{"recurly/seconds by their size", []string{"Recurly-Signature", seconds + "," + hexMAC("recurly", seconds+"."+trapBody)}, nil},
	{"recurly/two signatures during a rotation", []string{"Recurly-Signature", millis + "," + zeros + "," + hexMAC("recurly", millis+"."+trapBody)}, nil},
	{"sanity/milliseconds", []string{"Sanity-Webhook-Signature", "t=" + millis + ",v1=" + b64URL("sanity", millis+"."+trapBody)}, nil},
	{"sanity/seconds are refused", []string{"Sanity-Webhook-Signature", "t=" + seconds + ",v1=" + b64URL("sanity", seconds+"."+trapBody)}, provider.ErrStale},
	{"sanity/hex is refused", []string{"Sanity-Webhook-Signature", "t=" + millis + ",v1=" + hexMAC("sanity", millis+"."+trapBody)}, provider.ErrSignatureMalformed},
	{"workos/milliseconds, a comma and a space", []string{"WorkOS-Signature", "t=" + millis + ", v1=" + hexMAC("workos", millis+"."+trapBody)}, nil},
	{"workos/seconds are refused", []string{"WorkOS-Signature", "t=" + seconds + ", v1=" + hexMAC("workos", seconds+"."+trapBody)}, provider.ErrStale},

	{"slack/v0 and colons", []string{"X-Slack-Request-Timestamp", seconds, "X-Slack-Signature", "v0=" + hexMAC("slack", "v0:"+seconds+":"+trapBody)}, nil},
	{"zoom/v0 and colons, over the bytes", []string{"X-Zm-Request-Timestamp", seconds, "X-Zm-Signature", "v0=" + hexMAC("zoom", "v0:"+seconds+":"+trapBody)}, nil},
	{"customerio/v0 and colons, without a prefix", []string{"X-CIO-Timestamp", seconds, "X-CIO-Signature", hexMAC("customerio", "v0:"+seconds+":"+trapBody)}, nil},
	{"klaviyo/the body before the timestamp", []string{"Klaviyo-Timestamp", rfc, "Klaviyo-Signature", hexMAC("klaviyo", trapBody+rfc)}, nil},
	{"klaviyo/an HTTP date", []string{"Klaviyo-Timestamp", "Tue, 14 Apr 2026 03:50:12 GMT", "Klaviyo-Signature", hexMAC("klaviyo", trapBody+"Tue, 14 Apr 2026 03:50:12 GMT")}, nil},
	{"klaviyo/the timestamp before the body", []string{"Klaviyo-Timestamp", rfc, "Klaviyo-Signature", hexMAC("klaviyo", rfc+trapBody)}, provider.ErrSignatureMismatch},
	{"klaviyo/no X-", []string{"X-Klaviyo-Timestamp", rfc, "X-Klaviyo-Signature", hexMAC("klaviyo", trapBody+rfc)}, provider.ErrSignatureMissing},
	{"zendesk/RFC 3339, nothing between time and body", []string{"X-Zendesk-Webhook-Signature-Timestamp", rfc, "X-Zendesk-Webhook-Signature", b64MAC("zendesk", rfc+trapBody)}, nil},
	{"twitch/nanoseconds", []string{"Twitch-Eventsub-Message-Id", "m1", "Twitch-Eventsub-Message-Timestamp", "2026-09-21T14:13:20.634234626Z",
		"Twitch-Eventsub-Message-Signature", "sha256=" + hexMAC("twitch", "m12026-09-21T14:13:20.634234626Z"+trapBody)}, nil},
	{"twitch/older than 10 minutes", []string{"Twitch-Eventsub-Message-Id", "m1", "Twitch-Eventsub-Message-Timestamp", "2026-09-21T14:03:19.9Z",
		"Twitch-Eventsub-Message-Signature", "sha256=" + hexMAC("twitch", "m12026-09-21T14:03:19.9Z"+trapBody)}, provider.ErrStale},
	{"hookdeck/the second header during a rotation", []string{"X-Hookdeck-Signature", b64(make([]byte, 32)), "X-Hookdeck-Signature-2", b64MAC("hookdeck", trapBody)}, nil},
	{"hookdeck/the original provider's signature is none", []string{"Stripe-Signature", "t=" + seconds + ",v1=" + zeros}, provider.ErrSignatureMissing},
	{"docusign/the key's number does not matter", []string{"X-DocuSign-Signature-1", b64(make([]byte, 32)), "X-DocuSign-Signature-2", b64MAC("docusign", trapBody)}, nil},
	{"docusign/the hundredth key alone", []string{"X-DocuSign-Signature-100", b64MAC("docusign", trapBody)}, nil},
	{"docusign/there is no hundred and first", []string{"X-DocuSign-Signature-101", b64MAC("docusign", trapBody)}, provider.ErrSignatureMissing},
	{"gitlab/secret token", []string{"X-Gitlab-Token", secretOf("gitlab")}, nil},
	{"gitlab/the signature decides beside a token", []string{"X-Gitlab-Token", secretOf("gitlab"), "Webhook-Id", "m1", "Webhook-Timestamp", seconds,
		"Webhook-Signature", "v1," + b64(make([]byte, 32))}, provider.ErrNoKey},
	{"telegram/a wrong token", []string{"X-Telegram-Bot-Api-Secret-Token", "another"}, provider.ErrSignatureMismatch},
	{"chargebee/basic", []string{"Authorization", "Basic " + b64([]byte("user:a pass: word"))}, nil},
	{"chargebee/another password", []string{"Authorization", "Basic " + b64([]byte("user:a pass"))}, provider.ErrSignatureMismatch},
	{"postmark/a bearer is refused", []string{"Authorization", "Bearer " + b64([]byte("user:a pass: word"))}, provider.ErrSignatureMalformed},

	{"openai/a signature without v1 is refused", []string{"Webhook-Id", "m1", "Webhook-Timestamp", seconds, "Webhook-Signature",
		b64(sum(sha256.New, "0123456789abcdef01234567", "m1."+seconds+"."+trapBody))}, provider.ErrSignatureMalformed},
	{"recurly/XML webhooks are not signed", []string{"Content-Type", "application/xml"}, provider.ErrSignatureMissing},

	{"square/the public URL is signed", []string{"X-Square-HmacSha256-Signature", b64MAC("square", publicURL+trapBody)}, nil},
	{"square/the proxied URL is refused", []string{"X-Square-HmacSha256-Signature", b64MAC("square", "http://legacy:8080/hooks/1"+trapBody)}, provider.ErrSignatureMismatch},
	{"trello/the URL behind the body", []string{"X-Trello-Webhook", b64(sum(sha1.New, secretOf("trello"), trapBody+publicURL))}, nil},
	{"hubspot/version 3, milliseconds", []string{"X-HubSpot-Request-Timestamp", millis, "X-HubSpot-Signature-v3", b64MAC("hubspot", "POST"+publicURL+trapBody+millis)}, nil},
	{"hubspot/version 3 in seconds is refused", []string{"X-HubSpot-Request-Timestamp", seconds, "X-HubSpot-Signature-v3", b64MAC("hubspot", "POST"+publicURL+trapBody+seconds)}, provider.ErrStale},
	{"hubspot/version 2", []string{"X-HubSpot-Signature-Version", "v2", "X-HubSpot-Signature", plainHash(secretOf("hubspot") + "POST" + publicURL + trapBody)}, nil},
	{"hubspot/version 1", []string{"X-HubSpot-Signature-Version", "v1", "X-HubSpot-Signature", plainHash(secretOf("hubspot") + trapBody)}, nil},
	{"hubspot/version 1 called version 2", []string{"X-HubSpot-Signature-Version", "v2", "X-HubSpot-Signature", plainHash(secretOf("hubspot") + trapBody)}, provider.ErrSignatureMismatch},
	{"hubspot/version 3 decides beside version 1", []string{"X-HubSpot-Signature-Version", "v1", "X-HubSpot-Signature", plainHash(secretOf("hubspot") + trapBody),
		"X-HubSpot-Request-Timestamp", millis, "X-HubSpot-Signature-v3", b64(make([]byte, 32))}, provider.ErrSignatureMismatch},
	{"contentful/method, path, headers and body", contentfulHeaders(millis), nil},
	{"contentful/30 seconds, in milliseconds", contentfulHeaders(strconv.FormatInt(now.UnixMilli()-30001, 10)), provider.ErrStale},
}

const trapBody = `{"a":1}`

var zeros = strings.Repeat("0", 64)

func b64URL(id, content string) string {
	return base64.RawURLEncoding.EncodeToString(sum(sha256.New, secretOf(id), content))
}

func plainHash(content string) string {
	h := sha256.Sum256([]byte(content))
	return hex.EncodeToString(h[:])
}

func contentfulHeaders(at string) []string {
	const names = "x-contentful-signed-headers,x-contentful-timestamp"
	return []string{"X-Contentful-Signed-Headers", names, "X-Contentful-Timestamp", at, "X-Contentful-Signature",
		hexMAC("contentful", "POST\n/hooks/1\nx-contentful-signed-headers:"+names+";x-contentful-timestamp:"+at+"\n"+trapBody)}
}

func TestSignatureTraps(t *testing.T) {
	for _, tt := range signatureTraps {
		t.Run(tt.name, func(t *testing.T) {
			id, _, _ := strings.Cut(tt.name, "/")
			d := delivery(trapBody, tt.headers...)
			d.URL = publicURL
			if err := verify(t, compile(t, lookup(t, id)), d, now); !errors.Is(err, tt.want) {
				t.Errorf("%v, want %v", err, tt.want)
			}
		})
	}
}

// tamperings change a signed delivery; wanted is what comes of it, nil where the signature does not cover the change.
var tamperings = []struct {
	name string
	then change
	want error
}{
	{"sendgrid/the line break after the array is signed", func(_ *testing.T, d *provider.Delivery) { d.Body = bytes.TrimSpace(d.Body) }, provider.ErrSignatureMismatch},
	{"linear/Linear-Timestamp is not signed", set("Linear-Timestamp", "1"), nil},
	{"linear/webhookTimestamp is", replace(`"webhookTimestamp":1790000000000`, `"webhookTimestamp":1790000000001`), provider.ErrSignatureMismatch},
	{"discord/the timestamp is signed", set("X-Signature-Timestamp", "1790000001"), provider.ErrSignatureMismatch},
	{"mailgun/the body is not signed", replace("delivered", "failed"), nil},
	{"mailgun/the token is", replace("a8ce0edb2d", "b8ce0edb2d"), provider.ErrSignatureMismatch},
	{"adyen/the classic signature covers eight fields", replace(`"value":9800`, `"value":1`), provider.ErrSignatureMismatch},
	{"adyen/an originalReference from nowhere", replace(`"reason"`, `"originalReference":"x","reason"`), provider.ErrSignatureMismatch},
	{"adyen/all else can be changed", replace("1234:7777:12/2030", "refused"), nil},
	{"braintree/the payload is signed", replace("bt_payload=PD94", "bt_payload=PD95"), provider.ErrSignatureMismatch},
	{"paypal/the checksum covers the body", replace("EUR 98.00", "EUR 98.01"), provider.ErrSignatureMismatch},
	{"paypal/a foreign host's certificate", set("PayPal-Cert-Url", "https://api.paypal.com.example.net/cert"), provider.ErrCertificate},
	{"paypal/another algorithm", set("PayPal-Auth-Algo", "SHA1withRSA"), provider.ErrSchemeUnknown},
	{"plaid/white space counts", func(_ *testing.T, d *provider.Delivery) { d.Body = append(d.Body, '\n') }, provider.ErrBodyHash},
	{"plaid/alg none", set("Plaid-Verification", "eyJhbGciOiJub25lIn0.e30."), provider.ErrSignatureMalformed},
	{"twilio/a form field is signed", replace("delivered", "failed"), provider.ErrSignatureMismatch},
	{"twilio/the default port may be written", func(_ *testing.T, d *provider.Delivery) {
		d.URL = strings.Replace(d.URL, ".com/", ".com:443/", 1)
	}, nil},
	{"twilio/another path", func(_ *testing.T, d *provider.Delivery) { d.URL += "2" }, provider.ErrSignatureMismatch},
	{"contentful/a signed header", set("X-Contentful-Topic", "ContentManagement.Entry.delete"), provider.ErrSignatureMismatch},
	{"aws-sns/the message is signed", replace("paid", "open"), provider.ErrSignatureMismatch},
	{"aws-sns/anybody's topic", replace("123456789012:orders", "999999999999:orders"), provider.ErrForeign},
	{"aws-sns/a foreign host's certificate", replace("sns.eu-central-1.amazonaws.com/SimpleN", "sns.eu-central-1.amazonaws.com.example.net/SimpleN"), provider.ErrCertificate},
	{"aws-sns/a bucket is no signing host", replace("sns.eu-central-1.amazonaws.com/SimpleN", "sns.s3.amazonaws.com/x/SimpleN"), provider.ErrCertificate},
	{"aws-sns/raw message delivery has no signature", body(`{"order":1}`, "X-Amz-Sns-Rawdelivery", "true"), provider.ErrSignatureMissing},
}

func TestTamperingTraps(t *testing.T) {
	for _, tt := range tamperings {
		t.Run(tt.name, func(t *testing.T) {
			id, _, _ := strings.Cut(tt.name, "/")
			c := compile(t, lookup(t, id))
			d := signed(t, c, "1234567")
			tt.then(t, &d)
			if err := verify(t, c, &d, now); !errors.Is(err, tt.want) {
				t.Errorf("%v, want %v", err, tt.want)
			}
		})
	}
}

func TestSecretTraps(t *testing.T) {
	t.Run("zendesk/the published test secret", func(t *testing.T) {
		if _, err := compile(t, lookup(t, "zendesk")).Key("dGhpc19zZWNyZXRfaXNfZm9yX3Rlc3Rpbmdfb25seQ=="); err == nil {
			t.Error("accepted")
		}
	})
	t.Run("gitlab/a signing token is no secret token", func(t *testing.T) {
		c := compile(t, lookup(t, "gitlab"))
		whsec := pairOf("svix").Verify
		if err := c.Verify(delivery(trapBody, "X-Gitlab-Token", whsec), []provider.Key{key(t, c, whsec)}, now, 0); !errors.Is(err, provider.ErrNoKey) {
			t.Error(err)
		}
		content := "m1." + seconds + "." + trapBody
		d := delivery(trapBody, "Idempotency-Key", "another", "Webhook-Id", "m1", "Webhook-Timestamp", seconds,
			"Webhook-Signature", "v1,"+b64(sum(sha256.New, "0123456789abcdef01234567", content)))
		if err := c.Verify(d, []provider.Key{key(t, c, whsec)}, now, 0); err != nil {
			t.Error(err)
		}
		if id := identity(t, c, d); strings.Join(id, "|") != "m1" {
			t.Errorf("%v: the header that is not signed decides", id)
		}
	})
	t.Run("gitlab/an example signed with a signing token", func(t *testing.T) {
		c := compile(t, lookup(t, "gitlab"))
		d := example(c, "e1", now)
		whsec := pairOf("svix")
		if err := c.Sign(&d, whsec.Sign, now); err != nil {
			t.Fatal(err)
		}
		if err := c.Verify(&d, []provider.Key{key(t, c, whsec.Verify)}, now, 0); err != nil {
			t.Error(err)
		}
		if id := identity(t, c, &d); strings.Join(id, "|") != "e1" || d.Header.Get("Webhook-Id") != "e1" {
			t.Error(id)
		}
	})
	t.Run("discord/a private key is refused", func(t *testing.T) {
		c := compile(t, lookup(t, "discord"))
		if _, err := c.Key(strings.Repeat("ab", 64)); err == nil {
			t.Error("accepted")
		}
	})
	t.Run("razorpay/old and new secret during a rotation", func(t *testing.T) {
		c := compile(t, lookup(t, "razorpay"))
		d := signed(t, c, "e1")
		if err := c.Verify(&d, []provider.Key{key(t, c, "new"), key(t, c, secretOf("razorpay"))}, now, 0); err != nil {
			t.Error(err)
		}
	})
	t.Run("paypal/the simulator's WEBHOOK_ID", func(t *testing.T) {
		c := compile(t, lookup(t, "paypal"))
		d := signed(t, c, "e1")
		if err := c.Verify(&d, []provider.Key{key(t, c, "WEBHOOK_ID")}, now, 0); !errors.Is(err, provider.ErrSignatureMismatch) {
			t.Error(err)
		}
	})
}

func TestOtherShapeTraps(t *testing.T) {
	t.Run("zendesk/GET with an empty body", func(t *testing.T) {
		c := compile(t, lookup(t, "zendesk"))
		d := provider.Delivery{Method: "GET", Header: http.Header{}}
		set("X-Zendesk-Webhook-Invocation-Id", "01GYJ")(t, &d)
		sign(t, c, &d, now)
		if err := verify(t, c, &d, now); err != nil || !c.IsDelivery("GET") || !c.IsDelivery("DELETE") {
			t.Error(err)
		}
		if id := identity(t, c, &d); strings.Join(id, "|") != "01GYJ" {
			t.Error(id)
		}
	})
	t.Run("mailgun/routes send a form", func(t *testing.T) {
		c := compile(t, lookup(t, "mailgun"))
		d := delivery("sender=ada%40example.com&timestamp="+seconds+"&token=t1&signature="+hexMAC("mailgun", seconds+"t1"), "Content-Type", formType)
		if err := verify(t, c, d, now); err != nil {
			t.Error(err)
		}
		if id := identity(t, c, d); strings.Join(id, "|") != "t1" {
			t.Error(id)
		}
	})
	t.Run("twilio/JSON is signed by bodySHA256", func(t *testing.T) {
		c := compile(t, lookup(t, "twilio"))
		d := delivery(trapBody, "Content-Type", "application/json")
		d.Query = "bodySHA256=" + plainHash(trapBody)
		d.URL = publicURL + "?" + d.Query
		d.Header.Set("X-Twilio-Signature", b64(sum(sha1.New, secretOf("twilio"), d.URL)))
		if err := verify(t, c, d, now); err != nil {
			t.Error(err)
		}
		d.Body = []byte(`{"a":2}`)
		if err := verify(t, c, d, now); !errors.Is(err, provider.ErrBodyHash) {
			t.Error(err)
		}
	})
	t.Run("twilio/a field given twice", func(t *testing.T) {
		c := compile(t, lookup(t, "twilio"))
		d := delivery("To=b&To=a&To=b", "Content-Type", formType)
		d.URL = publicURL
		d.Header.Set("X-Twilio-Signature", b64(sum(sha1.New, secretOf("twilio"), publicURL+"ToaTob"))) // as in Node
		if err := verify(t, c, d, now); err != nil {
			t.Error(err)
		}
	})
	t.Run("braintree/a payload with one more line break", func(t *testing.T) {
		c := compile(t, lookup(t, "braintree"))
		hashed := sha1.Sum([]byte("integration_private_key"))
		mac := hex.EncodeToString(sum(sha1.New, string(hashed[:]), "cGF5bG9hZA==\n"))
		d := delivery("bt_signature=other%7C00%26integration_public_key%7C"+mac+"&bt_payload=cGF5bG9hZA%3D%3D", "Content-Type", formType)
		if err := verify(t, c, d, now); err != nil {
			t.Error(err)
		}
	})
	t.Run("hubspot/percent-encodings of the URL", func(t *testing.T) {
		c := compile(t, lookup(t, "hubspot"))
		d := delivery(trapBody, "X-HubSpot-Request-Timestamp", millis)
		d.URL = publicURL + "?to=a%40b%3Ac&q=%20%26"
		d.Header.Set("X-HubSpot-Signature-v3", b64MAC("hubspot", "POST"+publicURL+"?to=a@b:c&q=%20%26"+trapBody+millis))
		if err := verify(t, c, d, now); err != nil {
			t.Error(err)
		}
	})
	t.Run("adyen/platform notifications are signed in a header", func(t *testing.T) {
		c := compile(t, lookup(t, "adyen"))
		k, _ := hex.DecodeString(secretOf("adyen"))
		d := delivery(trapBody, "Hmacsignature", b64(sum(sha256.New, string(k), trapBody)))
		if err := verify(t, c, d, now); err != nil {
			t.Error(err)
		}
	})
}

// TestSNSTraps: a confirmation is signed over other members than a notification, and neither's signature is good for the other.
func TestSNSTraps(t *testing.T) {
	c := compile(t, lookup(t, "aws-sns"))
	make := func(kind, version string) provider.Delivery {
		d := *delivery(`{"Type":"` + kind + `","MessageId":"1","Token":"t","TopicArn":"arn:aws:sns:eu-central-1:123456789012:orders","Message":"m",` +
			`"SubscribeURL":"https://sns.eu-central-1.amazonaws.com/?Action=ConfirmSubscription","Timestamp":"` + rfc + `","SignatureVersion":"` + version +
			`","Signature":"","SigningCertURL":"https://sns.eu-central-1.amazonaws.com/a.pem"}`)
		d.Certificates = pairOf("aws-sns").Certificates
		sign(t, c, &d, now)
		return d
	}
	for _, kind := range []string{"Notification", "SubscriptionConfirmation", "UnsubscribeConfirmation"} {
		for _, version := range []string{"1", "2"} {
			t.Run("aws-sns/"+kind+" version "+version, func(t *testing.T) {
				d := make(kind, version)
				if err := verify(t, c, &d, now); err != nil {
					t.Error(err)
				}
				if _, signed, ok := c.Handshake(&d); ok != (kind != "Notification") || ok && !signed {
					t.Error("handshake", ok, signed)
				}
				other := "Notification"
				if kind == other {
					other = "UnsubscribeConfirmation"
				}
				replace(`"Type":"`+kind, `"Type":"`+other)(t, &d)
				if err := verify(t, c, &d, now); !errors.Is(err, provider.ErrSignatureMismatch) {
					t.Errorf("as a %s: %v", other, err)
				}
			})
		}
	}
	t.Run("aws-sns/an hour of retries keeps the timestamp", func(t *testing.T) {
		d := make("Notification", "2")
		if err := verify(t, c, &d, now.Add(time.Hour+time.Minute)); err != nil {
			t.Error(err)
		}
	})
}
