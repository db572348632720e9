package provider

import "time"

func woocommerce() Spec {
	return Spec{
		ID:      "woocommerce",
		Title:   "WooCommerce",
		Docs:    "https://woocommerce.com/document/webhooks/",
		Schemes: []Scheme{{Algorithm: "hmac-sha256", Header: "X-WC-Webhook-Signature", Encoding: encodingBase64}},
		// The delivery ID is the same for all events of a webhook in one second, so the body is a part.
		EventID: []Part{
			FromHeaders("X-WC-Webhook-Source"), FromHeaders("X-WC-Webhook-ID"), FromHeaders("X-WC-Webhook-Delivery-ID"),
			{{From: FromBody}},
		},
		EventType:  FromHeaders("X-WC-Webhook-Topic"),
		Account:    FromHeaders("X-WC-Webhook-Source"),
		Handshakes: []Handshake{{Name: "ping", Body: `webhook_id=[0-9]+`, Answer: &Answer{Status: 200}}},
		Retry: Retry{
			Schedule: "none; the webhook is disabled after more than 5 failures in a row",
		},
		ResponseTimeout: 60 * time.Second,
		TTL:             day,
		Traps: []string{
			"X-WC-Webhook-Delivery-ID is a hash of the webhook and the current second: two events in one second share it.",
			"The ping on creation is an unsigned form, webhook_id=<number>, and must get 200.",
			"WooCommerce does not retry: a delivery that is refused is lost.",
			"301 and 302 count as successes.",
			"A shop can change the hash algorithm by a filter; only SHA-256, the default, is accepted.",
			"The signature is base64.",
		},
		Evidence:   []string{"woocommerce/woocommerce, plugins/woocommerce/includes/class-wc-webhook.php at 00e1bc4"},
		Confidence: "high",
		Sample: Sample{
			Header: map[string]string{
				"Content-Type":             "application/json",
				"User-Agent":               "WooCommerce/10.3.0 Hookshot (WordPress/6.8)",
				"X-WC-Webhook-Delivery-ID": "2d5b1e9c6fbb8d7d2b2b0d8cf0b1f8f1",
				"X-WC-Webhook-Event":       "updated",
				"X-WC-Webhook-ID":          "12",
				"X-WC-Webhook-Resource":    "order",
				"X-WC-Webhook-Source":      "https://shop.example.com/",
				"X-WC-Webhook-Topic":       "order.updated",
			},
			Body: sample("woocommerce.json"),
		},
	}
}

func typeform() Spec {
	return Spec{
		ID:    "typeform",
		Title: "Typeform",
		Docs:  "https://www.typeform.com/developers/webhooks/secure-your-webhooks/",
		Schemes: []Scheme{{
			Algorithm: "hmac-sha256",
			Header:    "Typeform-Signature",
			Prefix:    "sha256=",
			Encoding:  encodingBase64,
		}},
		EventID:   []Part{FromJSONPaths("$.event_id")},
		Fallbacks: [][]Part{{FromJSONPaths("$.form_response.token")}},
		EventType: FromJSONPaths("$.event_type"),
		Retry: Retry{
			Automatic: true,
			Window:    10 * hour,
			Schedule:  "for several hours: every 2 to 3 minutes for up to 10 hours; 404 and 410 disable the webhook",
			On:        serverFailure(),
			Manual:    "resend; keeps event_id",
		},
		ResponseTimeout: 30 * time.Second,
		TTL:             day,
		BodyHashSafe:    true,
		Traps: []string{
			"The prefix sha256= is followed by base64, not by hex.",
			"There is no timestamp.",
		},
		Evidence:   []string{"ngrok/ngrok-docs, integration of Typeform"},
		Unverified: []string{"the retry schedule and what is retried"},
		Confidence: "medium",
		Sample: Sample{
			Header: map[string]string{"Content-Type": "application/json", "User-Agent": "Typeform Webhooks"},
			Body:   sample("typeform.json"),
		},
	}
}

func calendly() Spec {
	return Spec{
		ID:    "calendly",
		Title: "Calendly",
		Docs:  "https://developer.calendly.com/api-docs/ZG9jOjM2MzE2MDM4-webhook-signatures",
		Schemes: []Scheme{{
			Algorithm: "hmac-sha256",
			Header:    "Calendly-Webhook-Signature",
			List:      &List{Separator: ",", Assign: "=", Names: []string{"v1"}},
			Content:   "{timestamp}.{body}",
			Timestamp: &Timestamp{From: FromElement, Name: "t"},
		}},
		Tolerance: 300 * time.Second,
		EventID:   []Part{{{From: FromBody}}},
		EventType: FromJSONPaths("$.event"),
		Account:   FromJSONPaths("$.created_by"),
		Retry: Retry{
			Automatic: true,
			Window:    day,
			Schedule:  "exponential for 24 hours, then the subscription is disabled",
			On:        anyFailure(),
		},
		TTL:          2 * day,
		BodyHashSafe: true,
		Traps: []string{
			"There is no event ID: the hash of the body, which contains the time of the event, stands in for it.",
			"payload.uri names the invitee, who is the same in invitee.created and invitee.canceled.",
		},
		Evidence: []string{"community.calendly.com, developer FAQ 548 and 1462"},
		Unverified: []string{
			"the response timeout",
			"a retry has the same bytes",
		},
		Confidence: "high",
		Sample: Sample{
			Header: map[string]string{"Content-Type": "application/json"},
			Body:   sample("calendly.json"),
		},
	}
}
