package provider

import "time"

func shopify() Spec {
	hmac := func(header string) Scheme {
		return Scheme{Algorithm: "hmac-sha256", Header: header, Encoding: encodingBase64}
	}
	return Spec{
		ID:    "shopify",
		Title: "Shopify",
		Docs:  "https://shopify.dev/docs/apps/build/webhooks/verify-deliveries",
		// Webhooks, and the newer Events, whose headers have no X-.
		Schemes: []Scheme{hmac("X-Shopify-Hmac-Sha256"), hmac("Shopify-Hmac-Sha256")},
		EventID: []Part{
			FromHeaders("X-Shopify-Shop-Domain"), FromHeaders("X-Shopify-Topic"), FromHeaders("X-Shopify-Event-Id"),
		},
		Fallbacks: [][]Part{
			{FromHeaders("Shopify-Webhook-Id")}, // Events
			{FromHeaders("X-Shopify-Webhook-Id")},
		},
		EventType: FromHeaders("X-Shopify-Topic", "Shopify-Topic"),
		Account:   FromHeaders("X-Shopify-Shop-Domain", "Shopify-Shop-Domain"),
		Retry: Retry{
			Automatic: true,
			Window:    4 * hour,
			Attempts:  9,
			Schedule:  "8 retries over 4 hours, exponential, since 2024-09-10",
			On:        anyFailure(),
		},
		ResponseTimeout: 5 * time.Second,
		TTL:             3 * day,
		Traps: []string{
			"Several subscriptions to one topic send several webhooks for one event, with the same event ID: give them paths of their own, else only one is processed.",
			"19 retries over 48 hours, which much of the web still says, ended on 2024-09-10.",
			"Events deliveries have headers without X- and are told apart by Shopify-Webhook-Id.",
			"Webhooks created in the shop's admin are signed with the shop's secret, not the app's.",
			"After a rotation of the app's secret Shopify may sign with the old one for an hour: configure both.",
			"The headers that name the event are not signed, and X-Shopify-Triggered-At is the time of the event, not of the delivery.",
		},
		Evidence: []string{
			"npm @shopify/shopify-api 13.1.0, lib/webhooks/validate.js and types.js",
			"shopify.dev/changelog/updates-to-webhook-retry-mechanism",
			"shopify.dev/docs/apps/build/webhooks/ignore-duplicates: X-Shopify-Event-Id",
			"shopify.dev/docs/apps/build/events/verify-deliveries: Shopify-Webhook-Id",
			"shopify.dev/docs/apps/build/webhooks/verify-deliveries: an hour until a rotated secret signs",
		},
		Unverified: []string{
			"whether one event ID can span several topics; the topic is part of the identity to be safe",
			"whether X-Shopify-Webhook-Id is stable over retries: Shopify's libraries, and the newer of its two pages on duplicates, treat it as stable; blogs deny it",
			"X-Shopify-Test on test notifications",
			"Shopify-Shop-Domain on Events deliveries",
		},
		Confidence: "high",
		Sample: Sample{
			Header: map[string]string{
				"Content-Type":           "application/json",
				"X-Shopify-Api-Version":  "2026-10",
				"X-Shopify-Event-Id":     "{event_id}",
				"X-Shopify-Shop-Domain":  "acme-widgets.myshopify.com",
				"X-Shopify-Topic":        "orders/create",
				"X-Shopify-Triggered-At": "{rfc3339}",
				"X-Shopify-Webhook-Id":   "b54557e4-bdd9-4b37-8a5f-bf7d70bcd043",
			},
			Body: sample("shopify.json"),
		},
	}
}
