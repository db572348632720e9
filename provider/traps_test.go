package provider_test

import (
	"bytes"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/webhook-dedup/caddy-webhook-dedup/provider"
)

// change makes another delivery of one.
type change func(t *testing.T, d *provider.Delivery)

// set sets headers; an empty value removes one.
func set(pairs ...string) change {
	return func(_ *testing.T, d *provider.Delivery) {
		for i := 0; i+1 < len(pairs); i += 2 {
			if pairs[i+1] == "" {
				d.Header.Del(pairs[i])
			} else {
				d.Header.Set(pairs[i], pairs[i+1])
			}
		}
	}
}

// replace replaces texts in the body, which must be there.
func replace(pairs ...string) change {
	return func(t *testing.T, d *provider.Delivery) {
		for i := 0; i+1 < len(pairs); i += 2 {
			if !bytes.Contains(d.Body, []byte(pairs[i])) {
				t.Fatalf("no %s in %s", pairs[i], d.Body)
			}
			d.Body = bytes.ReplaceAll(d.Body, []byte(pairs[i]), []byte(pairs[i+1]))
		}
	}
}

// body replaces the whole body, and sets headers.
func body(text string, headers ...string) change {
	return func(t *testing.T, d *provider.Delivery) {
		d.Body = []byte(text)
		set(headers...)(t, d)
	}
}

func both(changes ...change) change {
	return func(t *testing.T, d *provider.Delivery) {
		for _, c := range changes {
			c(t, d)
		}
	}
}

// changed is the provider's example after a change, signed. What a change leaves nil is as it was.
func changed(t *testing.T, c *provider.Compiled, how change) provider.Delivery {
	t.Helper()
	d := example(c, "1234567", now)
	if how != nil {
		how(t, &d)
	}
	sign(t, c, &d, now)
	if err := verify(t, c, &d, now); err != nil {
		t.Fatal(err)
	}
	return d
}

// metaStatuses is a WhatsApp delivery with a status for a message.
func metaStatuses(status string) change {
	return body(`{"object":"whatsapp_business_account","entry":[{"id":"1","changes":[{"field":"messages","value":{"statuses":[` +
		`{"id":"wamid.1","status":"` + status + `","timestamp":"1790000000","recipient_id":"2"}]}}]}]}`)
}

func metaMessaging(text string) change {
	return body(`{"object":"page","entry":[{"id":"1","time":1,"messaging":[{"sender":{"id":"2"},"timestamp":1790000000123,` + text + `}]}]}`)
}

// identityTraps are pairs of deliveries, the example and what the changes make of it, that are easily taken for the same event,
// or for two.
var identityTraps = []struct {
	name  string
	first change
	again change
	same  bool
}{
	{"adyen/one pspReference, two event codes", nil, replace("AUTHORISATION", "CAPTURE"), false},
	{"adyen/one pspReference, success and failure", nil, replace(`"success":"true"`, `"success":"false"`), false},
	{"adyen/platform notifications have no items", body(`{"type":"a","n":1}`), body(`{"type":"a","n":2}`), false},
	{"asana/two fields changed at once", nil, replace("due_on", "name"), false},
	{"aws-sns/the header's message id is not signed", nil, set("X-Amz-Sns-Message-Id", "another"), true},
	{"bitbucket/X-Attempt-Number counts", nil, set("X-Attempt-Number", "2"), true},
	{"bitbucket/X-Hook-UUID is the webhook", nil, set("X-Request-UUID", "another"), false},
	{"calendly/one invitee, created and canceled", nil, replace("invitee.created", "invitee.canceled"), false},
	{"clerk/data.id is the user", nil, set("Svix-Id", "another"), false},
	{"coinbase-commerce/outer id changes per attempt", nil, replace("eb9c8d3f-2b5c-4f4e-9f0e-6a7d1c2b3a4f", "another"), true},
	{"coinbase-commerce/attempt_number is in the body", nil, replace(`"attempt_number":1`, `"attempt_number":2`), true},
	{"contentful/an entry is published twice", nil, set("X-Contentful-Idempotency-Key", "another"), false},
	{"discord/webhook events have no id", body(`{"version":1,"type":1,"event":{"type":"A","n":1}}`), body(`{"version":1,"type":1,"event":{"type":"A","n":2}}`), false},
	{"docusign/retryCount is in the body", nil, replace(`"retryCount":0`, `"retryCount":1`), true},
	{"docusign/two recipients at once", replace(`"accountId"`, `"recipientId":"1","accountId"`), replace(`"accountId"`, `"recipientId":"2","accountId"`), false},
	{"gethook/X-Request-Id is any proxy's", set("X-Request-Id", "r1"), set("X-Request-Id", "r2"), true},
	{"github/guid shared by all hooks", nil, set("X-GitHub-Hook-ID", "292430183"), false},
	{"github/a redelivery keeps the guid", nil, set("User-Agent", "GitHub-Hookshot/later"), true},
	{"gitlab/X-Gitlab-Webhook-UUID is not stable", nil, set("X-Gitlab-Webhook-UUID", "another"), true},
	{"gitlab/X-Gitlab-Event-UUID is shared by all hooks", nil, set("Idempotency-Key", "another"), false},
	{"gocardless/meta.webhook_id is the delivery", nil, replace("WB123", "WB124"), true},
	{"hookdeck/x-hookdeck-attempt-count counts", nil, set("X-Hookdeck-Attempt-Count", "2", "X-Hookdeck-Attempt-Trigger", "MANUAL"), true},
	{"hookdeck/x-hookdeck-requestid is shared by connections", nil, set("X-Hookdeck-EventID", "another"), false},
	{"hubspot/attemptNumber in the body", nil, replace(`"attemptNumber":0`, `"attemptNumber":3`), true},
	{"hubspot/eventId is not unique", nil, replace(`"objectId":123`, `"objectId":124`), false},
	{"intercom/delivery_attempts is in the body", nil, replace(`"delivery_attempts":1`, `"delivery_attempts":2`), true},
	{"intercom/without id the volatile members don't count", replace(`"id":"1234567",`, ``),
		replace(`"id":"1234567",`, ``, `"delivery_attempts":1`, `"delivery_attempts":2`), true},
	{"jira/X-Atlassian-Webhook-Retry counts", nil, set("X-Atlassian-Webhook-Retry", "1"), true},
	{"jira/without identifier", set("X-Atlassian-Webhook-Identifier", ""), both(set("X-Atlassian-Webhook-Identifier", ""), replace("99291", "99292")), false},
	{"klaviyo/no id in the elements", nil, replace("Widgets, large", "Widgets, small"), false},
	{"lemonsqueezy/meta.webhook_id is the webhook", nil, replace(`"id":"1234567"`, `"id":"1234568"`), false},
	{"line/isRedelivery flips", nil, replace(`"isRedelivery":false`, `"isRedelivery":true`), true},
	{"linear/webhookId is the configuration", nil, set("Linear-Delivery", "another"), false},
	{"linear/webhookTimestamp changes per attempt", nil, replace(`"webhookTimestamp":1790000000000`, `"webhookTimestamp":1790000009000`), true},
	{"linear/without Linear-Delivery", set("Linear-Delivery", ""), both(set("Linear-Delivery", ""), replace("539068e2", "539068e3")), false},
	{"mailgun/the token is no event", nil, replace(`"id":"1234567"`, `"id":"1234568"`), false},
	{"meta/status updates reuse the message id", metaStatuses("sent"), metaStatuses("delivered"), false},
	{"meta/a status repeated", metaStatuses("read"), both(metaStatuses("read"), replace(`"id":"1"`, `"id":"1","time":2`)), true},
	{"meta/a message and its status", nil, both(metaStatuses("sent"), replace("wamid.1", "1234567")), false},
	{"meta/Messenger mid", metaMessaging(`"message":{"mid":"m1"}`), metaMessaging(`"message":{"mid":"m2"}`), false},
	{"meta/Messenger read receipts", metaMessaging(`"read":{"watermark":1}`), metaMessaging(`"read":{"watermark":2}`), false},
	{"mux/attempts are in the body", nil, replace(`"attempts":[]`, `"attempts":[{"status":500}]`), true},
	{"openai/webhook-id decides, not the body", nil, replace(`resp_682f`, `resp_682e`), true},
	{"paddle/a replay makes a new notification_id", nil, replace("ntf_01hv8x2nqx9r6m3w5k7j4d1c8b", "ntf_2"), true},
	{"pagerduty/X-Webhook-Id is repeated per attempt", nil, replace("01DJRTGVQQ3TX5D2P1HFY8J0WQ", "another"), true},
	{"pagerduty/without X-Webhook-Id", set("X-Webhook-Id", ""), both(set("X-Webhook-Id", ""), replace("01DJRTGVQQ3TX5D2P1HFY8J0WQ", "another")), false},
	{"paypal/the transmission id may change", nil, set("PayPal-Transmission-Id", "another"), true},
	{"postmark/opens of one message", replace("Delivery", "Open", "DeliveredAt", "ReceivedAt"),
		replace("Delivery", "Open", "DeliveredAt", "ReceivedAt", "14:13:20", "14:13:21"), false},
	{"postmark/two recipients of one message", nil, replace("ada@", "grace@"), false},
	{"resend/data.email_id is the message", nil, set("Svix-Id", "another"), false},
	{"sanity/equal documents", nil, set("Idempotency-Key", "another"), false},
	{"sendgrid/sg_event_id is not everywhere", replace(`"sg_event_id":"1234567",`, ""), both(replace(`"sg_event_id":"1234567",`, "", "delivered", "open")), false},
	{"sentry/Request-ID is new per sending", nil, set("Request-ID", "another", "Sentry-Hook-Timestamp", "1790000009"), true},
	{"shopify/one event id, two topics", nil, set("X-Shopify-Topic", "orders/paid"), false},
	{"shopify/one event id, two shops", nil, set("X-Shopify-Shop-Domain", "other.myshopify.com"), false},
	{"slack/X-Slack-Retry-Num is no duplicate", nil, set("X-Slack-Retry-Num", "1", "X-Slack-Retry-Reason", "http_timeout"), true},
	{"slack/slash commands by trigger_id", body("command=%2Forder&trigger_id=1.2.a", "Content-Type", formType), body("command=%2Forder&trigger_id=1.2.b", "Content-Type", formType), false},
	{"stripe/two events for one change", nil, replace("1234567", "1234568"), false},
	{"square/retry headers", nil, set("Square-Retry-Number", "2"), true},
	{"telegram/one chat, two updates", nil, replace(`"update_id":1234567`, `"update_id":1234568`), false},
	{"telegram/update_id is per bot, so bots need scopes of their own", nil, replace("/order", "/another"), true},
	{"trello/the card is no event", nil, replace("1234567", "1234568"), false},
	{"twilio/status callbacks of one SID", set("I-Twilio-Idempotency-Token", ""),
		both(set("I-Twilio-Idempotency-Token", ""), replace("MessageStatus=delivered", "MessageStatus=read")), false},
	{"twilio/a retry has the same token", nil, set("User-Agent", "TwilioProxy/1.2"), true},
	{"twitch/message retry counts", nil, set("Twitch-Eventsub-Message-Retry", "1"), true},
	{"typeform/without event_id the response's token", replace(`"event_id":"1234567",`, ""), replace(`"event_id":"1234567",`, "", "a3a12ec67a", "b3a12ec67a"), false},
	{"woocommerce/two events in one second", nil, replace("processing", "completed"), false},
	{"woocommerce/two webhooks", nil, set("X-WC-Webhook-ID", "13"), false},
	{"xero/entropy changes the bytes", nil, replace("RNXFSXQQRIPMZBCVKLOT", "another"), true},
	{"xero/one resource changed twice", nil, replace("14:13:20", "14:13:21"), false},
	{"zendesk/one ticket, two invocations", nil, set("X-Zendesk-Webhook-Invocation-Id", "another"), false},
	{"zoom/one meeting, two times", nil, replace(`"event_ts":1790000000000`, `"event_ts":1790000000001`), false},
}

func TestIdentityTraps(t *testing.T) {
	for _, tt := range identityTraps {
		t.Run(tt.name, func(t *testing.T) {
			id, _, _ := strings.Cut(tt.name, "/")
			c := compile(t, lookup(t, id))
			first, again := changed(t, c, tt.first), changed(t, c, tt.again)
			a, b := identity(t, c, &first), identity(t, c, &again)
			if a == nil || b == nil || slices.Equal(a, b) != tt.same {
				t.Errorf("%v and %v, the same event: %v", a, b, tt.same)
			}
		})
	}
}

// nameless are deliveries that no source may name: their bytes, or what looks like their ID, repeat.
var nameless = []struct {
	name   string
	change change
}{
	{"asana/an element without its time", replace(`"created_at"`, `"x"`)},
	{"dropbox/equal bytes are different changes", nil},
	{"gitlab/before 17.4 there is no Idempotency-Key", set("Idempotency-Key", "")},
	{"gethook/no ID comes along", set("X-Webhook-Id", "", "X-Request-Id", "r1")},
	{"hookdeck/a request is no event", set("X-Hookdeck-EventID", "")},
	{"meta/an entry's id is the page", body(`{"object":"user","entry":[{"id":"1","time":2,"changed_fields":["name"]}]}`)},
	{"meta/the same value is set again", body(`{"object":"page","entry":[{"id":"1","time":2,"changes":[{"field":"name","value":"A"}]}]}`)},
	{"plaid/equal bytes are different events", nil},
	{"twilio/a call's status is no step of a menu", both(set("I-Twilio-Idempotency-Token", ""),
		body("CallSid=CA1&CallStatus=in-progress&Digits=1", "Content-Type", formType))},
	{"zendesk/the body is the account's own", set("X-Zendesk-Webhook-Invocation-Id", "")},
}

func TestNamelessTraps(t *testing.T) {
	for _, tt := range nameless {
		t.Run(tt.name, func(t *testing.T) {
			id, _, _ := strings.Cut(tt.name, "/")
			c := compile(t, lookup(t, id))
			d := changed(t, c, tt.change)
			if parts := identity(t, c, &d); parts != nil || c.Spec().BodyHashSafe {
				t.Errorf("identity %v, hash safe %v", parts, c.Spec().BodyHashSafe)
			}
		})
	}
	t.Run("mollie/classic must not be deduplicated", func(t *testing.T) {
		s := lookup(t, "mollie")
		d := delivery("id=tr_d0b0E3EA3v", "Content-Type", formType)
		if err := verify(t, compile(t, s), d, now); !errors.Is(err, provider.ErrSignatureMissing) {
			t.Errorf("unsigned: %v", err)
		}
		s.Schemes = nil // signature off
		if id, err := compile(t, s).Identify(d); !errors.Is(err, provider.ErrMissingID) || s.BodyHashSafe {
			t.Error(id, err)
		}
	})
}

// TestBatchTraps: elements are what is deduplicated, however they are grouped.
func TestBatchTraps(t *testing.T) {
	event := func(id string) string { return `{"event":"open","sg_event_id":"` + id + `"}` }
	elements := func(t *testing.T, id, text string) [][]string {
		t.Helper()
		c := compile(t, lookup(t, id))
		all, err := c.Elements(delivery(text))
		if err != nil {
			t.Fatal(err)
		}
		var ids [][]string
		for _, e := range all {
			ids = append(ids, e.Parts)
		}
		return ids
	}
	t.Run("sendgrid/a retried batch is grouped differently", func(t *testing.T) {
		first := elements(t, "sendgrid", "["+event("a")+","+event("b")+"]\r\n")
		again := elements(t, "sendgrid", "["+event("b")+","+event("c")+","+event("a")+"]\r\n")
		if !slices.Equal(first[0], again[2]) || !slices.Equal(first[1], again[0]) || slices.Equal(again[0], again[1]) {
			t.Error(first, again)
		}
	})
	t.Run("meta/one delivery, many entries", func(t *testing.T) {
		ids := elements(t, "meta", `{"entry":[{"id":"1","changes":[{"field":"messages","value":{"messages":[{"id":"w1","from":"2","type":"text"},`+
			`{"id":"w2","from":"2","type":"text"}],"statuses":[{"id":"w1","status":"read"}]}},{"field":"feed","value":{"created_time":1,"item":"post"}}]},`+
			`{"id":"1","messaging":[{"message":{"mid":"m1"}}]}]}`)
		if len(ids) != 5 || strings.Join(ids[2], " ") != "read w1" || ids[3][0] != "feed" || ids[4][0] != "m1" {
			t.Error(ids)
		}
	})
	t.Run("twilio/Event Streams", func(t *testing.T) {
		ids := elements(t, "twilio", `[{"id":"EZ1","type":"com.twilio.x"},{"id":"EZ2"}]`)
		if len(ids) != 2 || ids[0][0] != "EZ1" {
			t.Error(ids)
		}
	})
}

// TestTwilioGet: a GET is signed without a body, and names its event in the query.
func TestTwilioGet(t *testing.T) {
	c := compile(t, lookup(t, "twilio"))
	d := provider.Delivery{Method: "GET", Header: http.Header{}, Query: url.Values{"MessageSid": {"SM1"}, "SmsStatus": {"received"}}.Encode()}
	d.URL = publicURL + "?" + d.Query
	sign(t, c, &d, now)
	if err := verify(t, c, &d, now); err != nil {
		t.Fatal(err)
	}
	if id := identity(t, c, &d); strings.Join(id, " ") != "received SM1" {
		t.Error(id)
	}
	d.Body = []byte("MessageSid=SM2")
	if err := verify(t, c, &d, now); !errors.Is(err, provider.ErrSignature) {
		t.Errorf("a body that nobody signed: %v", err)
	}
}
