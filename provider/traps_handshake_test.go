package provider_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/webhook-dedup/caddy-webhook-dedup/provider"
)

// handshakeTraps are requests that are no events, and events that look like one.
var handshakeTraps = []struct {
	name, method, query, body string
	headers                   []string
	want                      string // its name, empty: none
	signed                    bool
	status                    int // of the answer, 0: the application's
	answer                    string
}{
	{"asana/X-Hook-Secret", "POST", "", "", []string{"X-Hook-Secret", "s"}, "X-Hook-Secret", false, 0, ""},
	{"asana/X-Hook-Secret with events is none", "POST", "", `{"events":[{"action":"added"}]}`, []string{"X-Hook-Secret", "s"}, "", false, 0, ""},
	{"asana/heartbeats are all the same bytes", "POST", "", `{"events":[]}`, nil, "heartbeat", true, 200, ""},
	{"aws-sns/SubscriptionConfirmation", "POST", "", `{"Type":"SubscriptionConfirmation","MessageId":"1"}`, nil, "SubscriptionConfirmation", true, 0, ""},
	{"aws-sns/UnsubscribeConfirmation", "POST", "", `{"Type":"UnsubscribeConfirmation","MessageId":"1"}`, nil, "UnsubscribeConfirmation", true, 0, ""},
	{"aws-sns/a header does not make a handshake", "POST", "", `{"Type":"Notification","MessageId":"1"}`,
		[]string{"X-Amz-Sns-Message-Type", "SubscriptionConfirmation"}, "", false, 0, ""},
	{"braintree/bt_challenge", "GET", "bt_challenge=20f9f8ed05f77439fe955c977e4c8a53", "", nil, "challenge", false, 200,
		"integration_public_key|d9b899556c966b3f06945ec21311865d35df3ce4"},
	{"braintree/a challenge is hexadecimal, or anything could be signed", "GET", "bt_challenge=payload", "", nil, "", false, 0, ""},
	{"discord/ping is no event", "POST", "", `{"id":"1","type":1,"token":"t","version":1}`, nil, "interaction PING", true, 200, `{"type":1}`},
	{"discord/webhook event ping is no event", "POST", "", `{"version":1,"application_id":"1","type":0}`, nil, "webhook event PING", true, 204, ""},
	{"discord/type 1 without token is a webhook event", "POST", "", `{"version":1,"application_id":"1","type":1,"event":{"type":"A"}}`, nil, "", false, 0, ""},
	{"dropbox/challenge", "GET", "challenge=abc%3Cb%3E", "", nil, "challenge", false, 200, "abc<b>"},
	{"dropbox/challenge in a notification is none", "POST", "challenge=abc", `{"list_folder":{}}`, nil, "", false, 0, ""},
	{"intercom/ping is no event", "POST", "", `{"id":null,"topic":"ping"}`, nil, "ping", true, 200, ""},
	{"line/the console's check has no events", "POST", "", `{"destination":"U1","events":[]}`, nil, "verify", true, 200, ""},
	{"meta/hub.challenge", "GET", "hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token=t", "", nil, "subscribe", false, 200, "1158201444"},
	{"meta/another hub.mode", "GET", "hub.mode=unsubscribe&hub.challenge=1", "", nil, "", false, 0, ""},
	{"pagerduty/pagey.ping", "POST", "", `{"event":{"id":"1","event_type":"pagey.ping"}}`, nil, "pagey.ping", true, 202, ""},
	{"slack/url_verification has no event id", "POST", "", `{"type":"url_verification","challenge":"3eZbrw1a"}`, nil, "url_verification", true, 200, "3eZbrw1a"},
	{"trello/HEAD on creation", "HEAD", "", "", nil, "creation", false, 200, ""},
	{"twitch/callback verification", "POST", "", `{"challenge":"pogchamp"}`,
		[]string{"Twitch-Eventsub-Message-Type", "webhook_callback_verification", "Twitch-Eventsub-Message-Id", "m1"}, "webhook_callback_verification", true, 200, "pogchamp"},
	{"twitch/revocation is an event", "POST", "", `{"subscription":{}}`,
		[]string{"Twitch-Eventsub-Message-Type", "revocation", "Twitch-Eventsub-Message-Id", "m1"}, "", false, 0, ""},
	{"woocommerce/the ping is unsigned", "POST", "", "webhook_id=12", nil, "ping", false, 200, ""},
	{"woocommerce/a ping with more behind is none", "POST", "", "webhook_id=12&status=paid", nil, "", false, 0, ""},
	{"xero/intent to receive", "POST", "", `{"events":[],"firstEventSequence":0,"lastEventSequence":0,"entropy":"S0m3"}`, nil, "intent to receive", true, 200, ""},
	{"zoom/url validation", "POST", "", `{"event":"endpoint.url_validation","payload":{"plainToken":"qgg8vlvZRS6UYooatFL8Aw"}}`, nil,
		"endpoint.url_validation", true, 200, `{"plainToken":"qgg8vlvZRS6UYooatFL8Aw","encryptedToken":"` +
			hex.EncodeToString(sum(sha256.New, "a secret of zoom", "qgg8vlvZRS6UYooatFL8Aw")) + `"}`},
}

func TestHandshakeTraps(t *testing.T) {
	for _, tt := range handshakeTraps {
		t.Run(tt.name, func(t *testing.T) {
			id, _, _ := strings.Cut(tt.name, "/")
			c := compile(t, lookup(t, id))
			d := delivery(tt.body, tt.headers...)
			d.Method, d.Query, d.URL = tt.method, tt.query, publicURL
			name, signed, ok := c.Handshake(d)
			if name != tt.want || ok != (tt.want != "") || signed != tt.signed {
				t.Fatalf("%q %v %v", name, signed, ok)
			}
			keys := []provider.Key{key(t, c, secretOf(id))}
			if signed {
				// Nobody answers before the signature has been seen.
				if err := verify(t, c, d, now); !errors.Is(err, provider.ErrSignature) {
					t.Errorf("unsigned: %v", err)
				}
				if _, _, _, answered := c.AnswerHandshake(d, keys); answered {
					t.Error("answered without a signature")
				}
				if id == "aws-sns" {
					return // see TestSNSTraps
				}
				sign(t, c, d, now)
			}
			status, header, text, answered := c.AnswerHandshake(d, keys)
			if answered != (tt.status != 0) || status != tt.status || string(text) != tt.answer {
				t.Errorf("%d %s %v", status, text, answered)
			}
			if tt.answer != "" && header.Get("X-Content-Type-Options") != "nosniff" {
				t.Error("what was said comes back without nosniff")
			}
		})
	}
}

// TestProbeTraps: Discord and Xero probe with wrong signatures, and an endpoint that does not refuse them is removed.
func TestProbeTraps(t *testing.T) {
	for name, text := range map[string]string{
		"discord/wrong signatures on purpose": `{"id":"1","type":1,"token":"t"}`,
		"xero/wrong signatures must get 401":  `{"events":[],"entropy":"S0m3"}`,
	} {
		t.Run(name, func(t *testing.T) {
			id, _, _ := strings.Cut(name, "/")
			c := compile(t, lookup(t, id))
			d := delivery(text)
			if err := c.Sign(d, wrongPairOf(id).Sign, now); err != nil {
				t.Fatal(err)
			}
			if _, signed, ok := c.Handshake(d); !ok || !signed {
				t.Error("no handshake")
			}
			if err := verify(t, c, d, now); !errors.Is(err, provider.ErrSignatureMismatch) {
				t.Error(err)
			}
		})
	}
	t.Run("discord/204 needs a content type", func(t *testing.T) {
		c := compile(t, lookup(t, "discord"))
		d := delivery(`{"type":0,"version":1}`)
		sign(t, c, d, now)
		if _, header, _, _ := c.AnswerHandshake(d, []provider.Key{key(t, c, secretOf("discord"))}); header.Get("Content-Type") == "" {
			t.Error(http.Header(header))
		}
	})
}
