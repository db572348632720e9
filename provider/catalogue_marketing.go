package provider

import "time"

func customerio() Spec {
	return Spec{
		ID:    "customerio",
		Title: "Customer.io reporting webhooks",
		Docs:  "https://docs.customer.io/journeys/webhooks/",
		Schemes: []Scheme{{
			Algorithm: "hmac-sha256",
			Header:    "X-CIO-Signature",
			Content:   "v0:{timestamp}:{body}",
			Timestamp: &Timestamp{From: FromHeader, Name: "X-CIO-Timestamp"},
		}},
		Tolerance: 300 * time.Second,
		EventID:   []Part{FromJSONPaths("$.event_id")},
		EventType: FromJSONPaths("$.metric"),
		Retry: Retry{
			Automatic: true,
			Window:    7 * day,
			Schedule:  "exponential over 7 days; some statuses wait an hour; later events queue behind the one that fails",
			On:        anyFailure(),
		},
		ResponseTimeout: 4 * time.Second,
		TTL:             14 * day,
		BodyHashSafe:    true,
		Traps: []string{
			"After 4 seconds the retry comes while the first attempt is still being processed.",
			"An event that keeps failing holds up all later ones.",
		},
		Evidence:   []string{"https://docs.customer.io/api/webhooks"},
		Confidence: "high",
		Sample: Sample{
			Header: map[string]string{"Content-Type": "application/json"},
			Body:   sample("customerio.json"),
		},
	}
}

func klaviyo() Spec {
	return Spec{
		ID:    "klaviyo",
		Title: "Klaviyo",
		Docs:  "https://developers.klaviyo.com/en/docs/working_with_system_webhooks",
		// The timestamp is signed but its format is not settled, so its age is not checked.
		Schemes: []Scheme{{
			Algorithm: "hmac-sha256",
			Header:    "Klaviyo-Signature",
			Content:   "{body}{header:Klaviyo-Timestamp}",
		}},
		EventID:   []Part{{{From: FromBody}}},
		EventType: FromJSONPaths("$.data[0].topic"),
		Retry: Retry{
			Automatic: true,
			Window:    3 * day,
			Schedule:  "not verified",
			On:        anyFailure(),
		},
		TTL:          6 * day,
		BodyHashSafe: true,
		Traps: []string{
			"The headers are Klaviyo-Signature and Klaviyo-Timestamp; many examples have an X- before them.",
			"The body comes first in what is signed, then the timestamp.",
			"Public code writes the timestamp as an HTTP date, as ISO 8601 and as a number: it is signed as sent, and its age is not checked.",
			"No element of data is known to have an ID: the hash of the body stands in for it, so a batch that is grouped anew is not recognised.",
		},
		Evidence: []string{
			"public receivers: headers and order of the signed content",
			"public tests of receivers: Klaviyo-Timestamp as an HTTP date and as ISO 8601",
		},
		Unverified: []string{"everything but the names of the headers and what is signed: retries, timeout, format of the timestamp, batches, whether a retry has the same bytes"},
		Confidence: "low",
		Sample: Sample{
			Header: map[string]string{"Content-Type": "application/json", "Klaviyo-Timestamp": "{rfc3339}"},
			Body:   sample("klaviyo.json"),
		},
	}
}
