package provider

import "time"

func zendesk() Spec {
	return Spec{
		ID:      "zendesk",
		Title:   "Zendesk",
		Docs:    "https://developer.zendesk.com/documentation/webhooks/verifying/",
		Methods: []string{"POST", "PUT", "PATCH", "DELETE", "GET"},
		Schemes: []Scheme{{
			Algorithm: "hmac-sha256",
			Header:    "X-Zendesk-Webhook-Signature",
			Encoding:  encodingBase64,
			Content:   "{timestamp}{body}",
			Timestamp: &Timestamp{From: FromHeader, Name: "X-Zendesk-Webhook-Signature-Timestamp", Format: FormatRFC3339},
			// It signs test requests and is published.
			RefusedSecrets: []string{"dGhpc19zZWNyZXRfaXNfZm9yX3Rlc3Rpbmdfb25seQ=="},
		}},
		// Zendesk names none. It covers the retries, should they keep the first timestamp.
		Tolerance: 65 * time.Minute,
		EventID:   []Part{FromHeaders("X-Zendesk-Webhook-Invocation-Id")},
		EventType: FromJSONPaths("$.type"),
		Account:   FromHeaders("X-Zendesk-Account-Id"),
		Retry: Retry{
			Automatic: true,
			Window:    hour,
			Schedule:  "409 up to 3 times, 429 and 503 where Retry-After is less than 60 s, timeouts up to 5 times; a circuit breaker above it",
			On:        []string{"409", "429", "503", "timeout"},
		},
		ResponseTimeout: 12 * time.Second,
		TTL:             day,
		Traps: []string{
			"Webhooks may be GET or DELETE requests with an empty body, which are signed and identified like any other.",
			"Test requests from the admin centre are signed with a secret that Zendesk publishes: it can't be configured.",
			"The body is the account's own template, so nothing in it can name the event.",
			"The header that names the event is not signed.",
			"503 is retried only with Retry-After below 60 seconds.",
		},
		Evidence: []string{
			"garethx/webhook-skills, zendesk, verification.md",
			"developer.zendesk.com, introduction to webhooks",
		},
		Unverified: []string{
			"the numbers of retries",
			"whether the signed timestamp is made anew for each attempt; the tolerance allows for either",
		},
		Confidence: "medium",
		Sample: Sample{
			Header: map[string]string{
				"Content-Type":                    "application/json; charset=utf-8",
				"User-Agent":                      "Zendesk Webhook",
				"X-Zendesk-Account-Id":            "123456",
				"X-Zendesk-Webhook-Id":            "01GYJ0XKJ9VZ5W3H2T6Q4R8N7M",
				"X-Zendesk-Webhook-Invocation-Id": "{event_id}",
			},
			Body: sample("zendesk.json"),
		},
	}
}

func intercom() Spec {
	return Spec{
		ID:        "intercom",
		Title:     "Intercom",
		Docs:      "https://developers.intercom.com/docs/webhooks/webhook-notifications",
		Schemes:   []Scheme{{Algorithm: "hmac-sha1", Header: "X-Hub-Signature", Prefix: "sha1="}},
		EventID:   []Part{FromJSONPaths("$.id")},
		Fallbacks: [][]Part{{{{From: FromBody, Except: []string{"$.delivery_attempts", "$.delivery_status", "$.delivered_at", "$.first_sent_at"}}}}},
		EventType: FromJSONPaths("$.topic"),
		Account:   FromJSONPaths("$.app_id"),
		Handshakes: []Handshake{{
			Name:   "ping",
			Signed: true,
			When:   []Condition{{Source: Source{From: FromJSON, Name: "$.topic"}, Equals: []string{"ping"}}},
			Answer: &Answer{Status: 200},
		}},
		Retry: Retry{
			Automatic: true,
			Window:    2 * hour,
			Schedule:  "once, after about a minute; 429 throttles from a minute upwards; suspended after 7 days of errors",
			On:        anyFailure(),
		},
		ResponseTimeout: 5 * time.Second,
		TTL:             day,
		Traps: []string{
			"delivery_attempts and first_sent_at stand in the body, so a hash of the whole body changes with each attempt.",
			"The topic ping is no event.",
			"The signature is SHA-1, under the header name that Bitbucket and Jira use for SHA-256.",
		},
		Evidence: []string{
			"https://developers.intercom.com/docs/webhooks/webhook-notifications",
			"automatelab.tech, Intercom",
		},
		Unverified: []string{"the number of retries, and their window"},
		Confidence: "medium",
		Sample: Sample{
			Header: map[string]string{"Content-Type": "application/json", "User-Agent": "intercom-webhooks"},
			Body:   sample("intercom.json"),
		},
	}
}
