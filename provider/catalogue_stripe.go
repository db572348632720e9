package provider

import "time"

func stripe() Spec {
	return Spec{
		ID:    "stripe",
		Title: "Stripe",
		Docs:  "https://docs.stripe.com/webhooks",
		Schemes: []Scheme{{
			Algorithm: "hmac-sha256",
			Header:    "Stripe-Signature",
			List:      &List{Separator: ",", Assign: "=", Names: []string{"v1"}},
			Content:   "{timestamp}.{body}",
			Timestamp: &Timestamp{From: FromElement, Name: "t"},
			// The key is the whole secret, its whsec_ included, and not base64.
		}},
		Tolerance: 300 * time.Second,
		EventID:   []Part{FromJSONPaths("$.id")},
		EventType: FromJSONPaths("$.type"),
		Account:   FromJSONPaths("$.account", "$.context"),
		Retry: Retry{
			Automatic:    true,
			Window:       3 * day,
			Schedule:     "live: exponential back-off for up to 3 days; sandbox: 3 times over a few hours",
			On:           anyFailure(),
			Manual:       "resend from the dashboard or the CLI; keeps the event ID",
			ManualWindow: 30 * day,
		},
		TTL:          7 * day,
		BodyHashSafe: true,
		Traps: []string{
			"An event goes to every endpoint that matches it, with the same ID: endpoints need scopes of their own.",
			"The signing secret is used whole, whsec_ included; Svix secrets with the same prefix are base64.",
			"Each attempt has a fresh timestamp and signature, so only the body stays the same over retries.",
			"Stripe may create two events for one change; they have different IDs and both are delivered.",
			"v2 thin events have object v2.core.event and name the account in context.",
			"Stripe's own SDKs refuse only old timestamps; here one that lies ahead by more than the tolerance is refused as well.",
		},
		Evidence: []string{
			"npm stripe 23.1.0, cjs/Webhooks.js",
			"stripe-go v82, webhook/client.go",
			"docs.stripe.com/webhooks/process-undelivered-events: 3 days",
		},
		Unverified: []string{
			"response timeout",
			"limits of manual resending: 15 days in the dashboard, 30 days in the CLI",
			"a fresh timestamp for each attempt",
			"number of retries in a sandbox",
		},
		Confidence: "high",
		Sample: Sample{
			Header: map[string]string{
				"Content-Type": "application/json; charset=utf-8",
				"User-Agent":   "Stripe/1.0 (+https://stripe.com/docs/webhooks)",
			},
			Body: sample("stripe.json"),
		},
	}
}
