package provider

import "time"

func paddle() Spec {
	return Spec{
		ID:    "paddle",
		Title: "Paddle Billing",
		Docs:  "https://developer.paddle.com/webhooks/signature-verification",
		Schemes: []Scheme{{
			Algorithm: "hmac-sha256",
			Header:    "Paddle-Signature",
			List:      &List{Separator: ";", Assign: "=", Names: []string{"h1"}},
			Content:   "{timestamp}:{body}",
			Timestamp: &Timestamp{From: FromElement, Name: "ts"},
		}},
		Tolerance: 300 * time.Second,
		EventID:   []Part{FromJSONPaths("$.event_id")},
		Fallbacks: [][]Part{{FromJSONPaths("$.notification_id")}},
		EventType: FromJSONPaths("$.event_type"),
		Retry: Retry{
			Automatic: true,
			Window:    3 * day,
			Attempts:  61,
			Schedule:  "live: up to 60 retries over 3 days, exponential; sandbox: 3 within 15 minutes",
			On:        anyFailure(),
			Manual:    "replay through the API; keeps event_id, makes a new notification_id",
		},
		ResponseTimeout: 5 * time.Second,
		TTL:             6 * day,
		BodyHashSafe:    true,
		Traps: []string{
			"The elements of Paddle-Signature are separated by semicolons, and during a rotation there are two h1.",
			"Paddle's own SDKs disagree about two h1: the one for Node keeps only the last, the one for Go refuses the header; here any h1 may match.",
			"The Node SDK accepts a timestamp for 5 seconds only, which a queue in front of the application exceeds; here it is 300.",
			"notification_id names the notification, which a replay makes anew; event_id names the event.",
			"Sandbox and live notifications come from different addresses and accounts.",
			"Only the answer 200 counts, within 5 seconds.",
		},
		Evidence: []string{
			"npm @paddle/paddle-node-sdk 3.10.0",
			"paddle-go-sdk v4.1.0",
			"https://developer.paddle.com/webhooks/about/respond-to-webhooks",
		},
		Unverified: []string{
			"retries in the sandbox",
			"a replay makes a new notification_id",
		},
		Confidence: "high",
		Sample: Sample{
			Header: map[string]string{"Content-Type": "application/json", "User-Agent": "Paddle"},
			Body:   sample("paddle.json"),
		},
	}
}

func razorpay() Spec {
	return Spec{
		ID:        "razorpay",
		Title:     "Razorpay",
		Docs:      "https://razorpay.com/docs/webhooks/validate-test/",
		Schemes:   []Scheme{{Algorithm: "hmac-sha256", Header: "X-Razorpay-Signature"}},
		EventID:   []Part{FromHeaders("X-Razorpay-Event-Id")},
		EventType: FromJSONPaths("$.event"),
		Account:   FromJSONPaths("$.account_id"),
		Retry: Retry{
			Automatic:    true,
			Window:       day,
			Schedule:     "exponential for 24 hours after the event, then the webhook is disabled",
			On:           anyFailure(),
			Manual:       "replay of unacknowledged events from the dashboard; keeps the event ID",
			ManualWindow: 7 * day,
		},
		ResponseTimeout: 5 * time.Second,
		TTL:             8 * day,
		BodyHashSafe:    true,
		Traps: []string{
			"Razorpay contradicts itself on rotation: its FAQ says that retries of older events keep the old secret, its replay page that replays use the current one. Configure both.",
			"The header that names the event is not signed, and there is no timestamp.",
		},
		Evidence: []string{
			"npm razorpay 2.9.8",
			"https://razorpay.com/docs/webhooks/best-practices",
			"https://razorpay.com/docs/webhooks/replay-events",
		},
		Confidence: "high",
		Sample: Sample{
			Header: map[string]string{"Content-Type": "application/json", "X-Razorpay-Event-Id": "{event_id}"},
			Body:   sample("razorpay.json"),
		},
	}
}

func coinbaseCommerce() Spec {
	return Spec{
		ID:        "coinbase-commerce",
		Title:     "Coinbase Commerce",
		Docs:      "https://docs.cdp.coinbase.com/commerce/docs/webhooks-security",
		Schemes:   []Scheme{{Algorithm: "hmac-sha256", Header: "X-CC-Webhook-Signature"}},
		EventID:   []Part{FromJSONPaths("$.event.id")},
		EventType: FromJSONPaths("$.event.type"),
		Retry: Retry{
			Automatic: true,
			Window:    3 * day,
			Schedule:  "exponential for 3 days",
			On:        anyFailure(),
			Manual:    "resend from the dashboard; keeps event.id",
		},
		TTL: 6 * day,
		Traps: []string{
			"The outer id is the delivery's and changes with each attempt; the event's is event.id.",
			"attempt_number stands in the body, so a hash of the body changes with each attempt.",
			"Only the answer 200 counts.",
		},
		Evidence:   []string{"npm coinbase-commerce-node 1.0.4, lib/Webhook.js"},
		Unverified: []string{"retry window and schedule"},
		Confidence: "medium",
		Sample: Sample{
			Header: map[string]string{"Content-Type": "application/json", "X-Cc-Version": "2018-03-22"},
			Body:   sample("coinbase-commerce.json"),
		},
	}
}

func lemonSqueezy() Spec {
	return Spec{
		ID:        "lemonsqueezy",
		Title:     "Lemon Squeezy",
		Docs:      "https://docs.lemonsqueezy.com/help/webhooks/signing-requests",
		Schemes:   []Scheme{{Algorithm: "hmac-sha256", Header: "X-Signature"}},
		EventID:   []Part{{{From: FromBody}}},
		EventType: Part{{From: FromJSON, Name: "$.meta.event_name"}, {From: FromHeader, Name: "X-Event-Name"}},
		Retry: Retry{
			Automatic: true,
			Window:    155 * time.Second,
			Attempts:  4,
			Schedule:  "3 retries: after 5, 25 and 125 seconds",
			On:        anyFailure(),
		},
		TTL:          day,
		BodyHashSafe: true,
		Traps: []string{
			"There is no event ID: the hash of the body stands in for it.",
			"meta.webhook_id names the webhook, not the event.",
			"Only the answer 200 counts.",
		},
		Evidence: []string{"general knowledge only; no source was read"},
		Unverified: []string{
			"retries and their intervals",
			"a retry has the same bytes",
			"redelivery by hand",
			"every other fact of this entry",
		},
		Confidence: "low",
		Sample: Sample{
			Header: map[string]string{"Content-Type": "application/json", "X-Event-Name": "order_created"},
			Body:   sample("lemonsqueezy.json"),
		},
	}
}

func mollie() Spec {
	return Spec{
		ID:    "mollie",
		Title: "Mollie",
		Docs:  "https://docs.mollie.com/reference/webhooks-new",
		// The next-generation webhooks. Classic ones are not signed, and their body id=tr_… is the same for every change.
		Schemes:   []Scheme{{Algorithm: "hmac-sha256", Header: "X-Mollie-Signature", Prefix: "sha256="}},
		EventID:   []Part{FromJSONPaths("$.id")},
		EventType: FromJSONPaths("$.type"),
		Retry: Retry{
			Automatic: true,
			Window:    26 * hour,
			Attempts:  10,
			Schedule:  "10 calls: at once, then 1, 3, 7, 15 and 31 minutes and 1, 2, 4 and 26 hours after the first",
			On:        anyFailure(),
		},
		ResponseTimeout: 15 * time.Second,
		TTL:             52 * hour,
		Traps: []string{
			"A classic webhook is the form id=tr_…, the same bytes for every change of a payment: deduplicating it, by ID or by hash, swallows the notification that it was paid.",
			"Classic webhooks are not signed: they pass only with signature off, and always to the application, because nothing names their event.",
			"Only the answer 200 counts, within 15 seconds.",
		},
		Evidence: []string{
			"mollie/api-documentation, source/overview/webhooks.rst at 5562885",
			"public code for the signature of next-generation webhooks",
		},
		Confidence: "high",
		Sample: Sample{
			Header: map[string]string{"Content-Type": "application/json", "User-Agent": "Mollie"},
			Body:   sample("mollie.json"),
		},
	}
}
