package provider

import "time"

func sanity() Spec {
	return Spec{
		ID:    "sanity",
		Title: "Sanity",
		Docs:  "https://www.sanity.io/docs/content-lake/webhooks",
		Schemes: []Scheme{{
			Algorithm: "hmac-sha256",
			Header:    "Sanity-Webhook-Signature",
			List:      &List{Separator: ",", Assign: "=", Names: []string{"v1"}},
			Encoding:  encodingBase64URL,
			Content:   "{timestamp}.{body}",
			Timestamp: &Timestamp{From: FromElement, Name: "t", Format: FormatUnixMS},
		}},
		Tolerance: 300 * time.Second,
		EventID:   []Part{FromHeaders("Idempotency-Key")},
		EventType: FromHeaders("Sanity-Operation"),
		Account:   FromHeaders("Sanity-Project-Id"),
		Retry: Retry{
			Automatic: true,
			Window:    60 * time.Second,
			Attempts:  3,
			Schedule:  "2 retries, 30 s apart, since 2026-04-29; before that exponential over 30 minutes",
			On:        []string{"429", "5xx"},
		},
		ResponseTimeout: 30 * time.Second,
		TTL:             day,
		Traps: []string{
			"The timestamp t is in milliseconds.",
			"The signature is base64url without padding.",
			"Sanity's SDK knows no age limit; here it is 300 seconds.",
			"A projection makes the body, so nothing in it can name the event.",
			"The header that names the event is not signed.",
		},
		Evidence: []string{
			"npm @sanity/webhook 4.0.4",
			"sanity.io, changelog of 2026-04-29",
		},
		Unverified: []string{
			"idempotency-key stays the same over retries",
			"the header sanity-project-id",
		},
		Confidence: "high",
		Sample: Sample{
			Header: map[string]string{
				"Content-Type":      "application/json",
				"User-Agent":        "Sanity.io webhook delivery",
				"Idempotency-Key":   "{event_id}",
				"Sanity-Dataset":    "production",
				"Sanity-Operation":  "update",
				"Sanity-Project-Id": "ppsg7ml5",
			},
			Body: sample("sanity.json"),
		},
	}
}

func dropbox() Spec {
	return Spec{
		ID:      "dropbox",
		Title:   "Dropbox",
		Docs:    "https://www.dropbox.com/developers/reference/webhooks",
		Schemes: []Scheme{{Algorithm: "hmac-sha256", Header: "X-Dropbox-Signature"}},
		// No identity: a notification says that something has changed, in the same bytes each time.
		Handshakes: []Handshake{{
			Name:      "challenge",
			Method:    "GET",
			EmptyBody: true,
			When:      []Condition{{Source: Source{From: FromQuery, Name: "challenge"}}},
			Answer:    &Answer{Body: "{query:challenge}"},
		}},
		Retry: Retry{
			Automatic: true,
			Window:    10 * time.Minute,
			Schedule:  "exponential for about 10 minutes",
			On:        anyFailure(),
		},
		ResponseTimeout: 10 * time.Second,
		TTL:             60 * time.Second,
		Traps: []string{
			"The body only names accounts that have changed: different changes have the same bytes, so nothing is deduplicated unless asked for.",
			"The challenge is to be echoed as text/plain with X-Content-Type-Options: nosniff.",
		},
		Evidence:   []string{"ngrok/ngrok-docs, integration of Dropbox"},
		Unverified: []string{"the retries"},
		Confidence: "medium",
		Sample: Sample{
			Header: map[string]string{"Content-Type": "application/json", "User-Agent": "DropboxWebhooks/1.0"},
			Body:   sample("dropbox.json"),
		},
	}
}

func workos() Spec {
	return Spec{
		ID:    "workos",
		Title: "WorkOS",
		Docs:  "https://workos.com/docs/events/data-syncing/webhooks",
		Schemes: []Scheme{{
			Algorithm: "hmac-sha256",
			Header:    "WorkOS-Signature",
			List:      &List{Separator: ",", Assign: "=", Names: []string{"v1"}},
			Content:   "{timestamp}.{body}",
			Timestamp: &Timestamp{From: FromElement, Name: "t", Format: FormatUnixMS},
		}},
		Tolerance: 180 * time.Second,
		EventID:   []Part{FromJSONPaths("$.id")},
		EventType: FromJSONPaths("$.event"),
		Account:   FromJSONPaths("$.data.organization_id"),
		Retry: Retry{
			Automatic: true,
			Window:    3 * day,
			Schedule:  "not checked",
			On:        anyFailure(),
		},
		TTL:          6 * day,
		BodyHashSafe: true,
		Traps: []string{
			"The timestamp t is in milliseconds, and a comma and a space separate the elements.",
			"WorkOS's SDK signs the JSON as it writes it anew; here the bytes count.",
		},
		Evidence:   []string{"npm @workos-inc/node 8.13.0: 180 s"},
		Unverified: []string{"the retries"},
		Confidence: "medium",
		Sample: Sample{
			Header: map[string]string{"Content-Type": "application/json", "User-Agent": "WorkOS Webhooks"},
			Body:   sample("workos.json"),
		},
	}
}
