package provider

import "time"

func gocardless() Spec {
	return Spec{
		ID:      "gocardless",
		Title:   "GoCardless",
		Docs:    "https://developer.gocardless.com/getting-started/staying-up-to-date-with-webhooks",
		Schemes: []Scheme{{Algorithm: "hmac-sha256", Header: "Webhook-Signature"}},
		Batch: &Batch{
			Paths:     []string{"$.events"},
			EventID:   []Part{FromJSONPaths("$.id")},
			EventType: FromJSONPaths("$.resource_type"),
			Account:   FromJSONPaths("$.links.organisation"),
		},
		Retry: Retry{
			Automatic: true,
			Window:    3 * day,
			Schedule:  "not published in what was read",
			On:        anyFailure(),
			Manual:    "retry from the dashboard; keeps the event IDs",
		},
		TTL: 7 * day,
		Traps: []string{
			"A delivery carries up to 250 events, each with an ID of its own; meta.webhook_id names the delivery.",
			"GoCardless suggests the answer 498 for a wrong signature; 401 does as well.",
		},
		Evidence:   []string{"npm gocardless-nodejs 10.1.2, cjs/webhooks.js"},
		Unverified: []string{"the retry window", "250 events in a delivery"},
		Confidence: "medium",
		Sample: Sample{
			Header: map[string]string{"Content-Type": "application/json", "User-Agent": "gocardless-webhook-service/1.1", "Origin": "https://api.gocardless.com"},
			Body:   sample("gocardless.json"),
		},
	}
}

func xero() Spec {
	return Spec{
		ID:      "xero",
		Title:   "Xero",
		Docs:    "https://developer.xero.com/documentation/guides/webhooks/overview/",
		Schemes: []Scheme{{Algorithm: "hmac-sha256", Header: "X-Xero-Signature", Encoding: encodingBase64}},
		Batch: &Batch{
			Paths: []string{"$.events"},
			EventID: []Part{
				FromJSONPaths("$.tenantId"), FromJSONPaths("$.eventCategory"), FromJSONPaths("$.eventType"),
				FromJSONPaths("$.eventDateUtc"), FromJSONPaths("$.resourceId"),
			},
			EventType: FromJSONPaths("$.eventCategory"),
			Account:   FromJSONPaths("$.tenantId"),
		},
		Handshakes: []Handshake{{Name: "intent to receive", Signed: true, EmptyBatch: true, Answer: &Answer{Status: 200}}},
		Retry: Retry{
			Automatic: true,
			Window:    day,
			Schedule:  "ever less often for 24 hours",
			On:        anyFailure(),
		},
		ResponseTimeout: 5 * time.Second,
		TTL:             2 * day,
		Traps: []string{
			"Intent to receive probes with wrong signatures, which must get 401, neither 400 nor 403.",
			"entropy changes the bytes of each delivery, so a hash of the body recognises nothing.",
			"The answer must be 200 within 5 seconds, with an empty body and without cookies.",
			"Events have no ID: tenant, category, type, time and resource together name one.",
		},
		Evidence:   []string{"garethx/webhook-skills, xero, verification.md"},
		Unverified: []string{"24 hours of retries"},
		Confidence: "medium",
		Sample: Sample{
			Header: map[string]string{"Content-Type": "application/json", "User-Agent": "Xero Webhooks"},
			Body:   sample("xero.json"),
		},
	}
}

func line() Spec {
	return Spec{
		ID:      "line",
		Title:   "LINE Messaging API",
		Docs:    "https://developers.line.biz/en/docs/messaging-api/verify-webhook-signature/",
		Schemes: []Scheme{{Algorithm: "hmac-sha256", Header: "X-Line-Signature", Encoding: encodingBase64}},
		Account: FromJSONPaths("$.destination"),
		Batch: &Batch{
			Paths:     []string{"$.events"},
			EventID:   []Part{FromJSONPaths("$.webhookEventId")},
			EventType: FromJSONPaths("$.type"),
		},
		Handshakes: []Handshake{{Name: "verify", Signed: true, EmptyBatch: true, Answer: &Answer{Status: 200}}},
		Retry: Retry{
			Automatic: true,
			Window:    day,
			Schedule:  "redelivery must be switched on; number and intervals are not published",
			On:        anyFailure(),
		},
		ResponseTimeout: 2 * time.Second,
		TTL:             3 * day,
		Traps: []string{
			"deliveryContext.isRedelivery flips in the body, so a hash of the body does not recognise a redelivery.",
			"The console's check is a delivery without events.",
			"Without redelivery switched on, an event that is refused is lost.",
		},
		Evidence: []string{
			"npm @line/bot-sdk 11.0.0",
			"line/line-openapi, webhook.yml",
		},
		Unverified: []string{"the window of redeliveries"},
		Confidence: "high",
		Sample: Sample{
			Header: map[string]string{"Content-Type": "application/json; charset=utf-8", "User-Agent": "LineBotWebhook/2.0"},
			Body:   sample("line.json"),
		},
	}
}

func asana() Spec {
	return Spec{
		ID:      "asana",
		Title:   "Asana",
		Docs:    "https://developers.asana.com/docs/webhooks-guide",
		Schemes: []Scheme{{Algorithm: "hmac-sha256", Header: "X-Hook-Signature"}},
		Batch: &Batch{
			Paths: []string{"$.events"},
			// The whole element beside its time: two changes of one resource at once differ in other members only.
			EventID:   []Part{FromJSONPaths("$.created_at"), {{From: FromBody}}},
			EventType: FromJSONPaths("$.action"),
			Account:   FromJSONPaths("$.user.gid"),
		},
		Handshakes: []Handshake{
			{
				// The application must learn the secret, so nobody answers for it.
				Name:      "X-Hook-Secret",
				EmptyBody: true,
				When:      []Condition{{Source: Source{From: FromHeader, Name: "X-Hook-Secret"}}},
			},
			{Name: "heartbeat", Signed: true, EmptyBatch: true, Answer: &Answer{Status: 200}},
		},
		Retry: Retry{
			Automatic: true,
			Window:    day,
			Schedule:  "exponential; a webhook without any success for 24 hours is deleted",
			On:        anyFailure(),
		},
		ResponseTimeout: 10 * time.Second,
		TTL:             2 * day,
		Traps: []string{
			"Heartbeats, every 8 hours, are deliveries without events and all the same bytes: they are never deduplicated.",
			"The secret comes in the handshake, one for each webhook; the application echoes it and it is configured here then.",
			"Events have no ID: user, resource, action and time together name one, and two fields changed at once differ only in the rest.",
		},
		Evidence:   []string{"Asana/developer-docs, _webhooks.html.md at 3920826"},
		Confidence: "high",
		Sample: Sample{
			Header: map[string]string{"Content-Type": "application/json; charset=utf-8"},
			Body:   sample("asana.json"),
		},
	}
}

func meta() Spec {
	return Spec{
		ID:      "meta",
		Title:   "Meta (Facebook, Instagram, Messenger, WhatsApp)",
		Docs:    "https://developers.facebook.com/docs/graph-api/webhooks/getting-started",
		Schemes: []Scheme{{Algorithm: "hmac-sha256", Header: "X-Hub-Signature-256", Prefix: "sha256="}},
		Batch: &Batch{
			Paths: []string{
				"$.entry[*].changes[*].value.messages[*]", // WhatsApp
				"$.entry[*].changes[*].value.statuses[*]",
				"$.entry[*].messaging[*]", // Messenger, Instagram
			},
			// A WhatsApp status, which has its message's ID.
			EventID: []Part{FromJSONPaths("$.status"), FromJSONPaths("$.id")},
			Fallbacks: [][]Part{
				{FromJSONPaths("$.from"), FromJSONPaths("$.type"), FromJSONPaths("$.id")}, // a WhatsApp message
				{FromJSONPaths("$.message.mid")},
				{FromJSONPaths("$.timestamp"), {{From: FromBody}}},                                    // what else Messenger says
				{FromJSONPaths("$.field"), FromJSONPaths("$.value.created_time"), {{From: FromBody}}}, // a change in a feed
				{FromJSONPaths("$.field"), FromJSONPaths("$.value.id"), {{From: FromBody}}},           // a comment
			},
			EventType: FromJSONPaths("$.status", "$.type", "$.field"),
			Account:   FromJSONPaths("$.recipient.id", "$.recipient_id", "$.from"),
		},
		EventType: FromJSONPaths("$.object"),
		Handshakes: []Handshake{{
			Name:      "subscribe",
			Method:    "GET",
			EmptyBody: true,
			When: []Condition{
				{Source: Source{From: FromQuery, Name: "hub.mode"}, Equals: []string{"subscribe"}},
				{Source: Source{From: FromQuery, Name: "hub.challenge"}},
			},
			Answer: &Answer{Body: "{query:hub.challenge}"},
		}},
		Retry: Retry{
			Automatic: true,
			Window:    7 * day,
			Schedule:  "WhatsApp: ever less often for up to 7 days; Graph webhooks: at once, then ever less often over 36 hours",
			On:        anyFailure(),
		},
		ResponseTimeout: 10 * time.Second,
		TTL:             14 * day,
		MaxBody:         3 << 20,
		Traps: []string{
			"A WhatsApp status has the ID of its message: sent, delivered and read differ in the status only.",
			"Meta signs an escaped form of non-ASCII text, which is what it sends: the raw bytes must be verified.",
			"An entry has an ID too, the page's or account's, which names no event.",
			"A change without a time or an ID of its own passes undeduplicated: the same value can be set again.",
			"Sources disagree on the timeout: 3, 5 to 10 and 20 seconds.",
			"hub.verify_token is the application's to check; the answer of this module does not.",
		},
		Evidence: []string{
			"hookdeck.com, guide to WhatsApp",
			"socialhook.io and richautomate.in: 7 days, 3 MB",
		},
		Unverified: []string{"36 hours for Graph webhooks", "the response timeout"},
		Confidence: "medium",
		Sample: Sample{
			Header: map[string]string{"Content-Type": "application/json", "User-Agent": "facebookexternalua"},
			Body:   sample("meta.json"),
		},
	}
}
