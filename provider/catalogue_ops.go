package provider

import "time"

func circleci() Spec {
	return Spec{
		ID:    "circleci",
		Title: "CircleCI",
		Docs:  "https://circleci.com/docs/outbound-webhooks/",
		Schemes: []Scheme{{
			Algorithm: "hmac-sha256",
			Header:    "Circleci-Signature",
			List:      &List{Separator: ",", Assign: "=", Names: []string{"v1"}},
		}},
		EventID:   []Part{FromJSONPaths("$.id")},
		EventType: Part{{From: FromHeader, Name: "Circleci-Event-Type"}, {From: FromJSON, Name: "$.type"}},
		Account:   FromJSONPaths("$.organization.id"),
		Retry: Retry{
			Automatic: true,
			Window:    day,
			Schedule:  "at a later time, which is not published",
			On:        anyFailure(),
		},
		ResponseTimeout: 10 * time.Second,
		TTL:             3 * day,
		BodyHashSafe:    true,
		Traps: []string{
			"The header may list signatures of several versions; only the newest one that is known, v1, is checked.",
			"There is no timestamp.",
		},
		Evidence:   []string{"circleci/circleci-docs, outbound-webhooks.adoc at 9734a14, with three published vectors"},
		Unverified: []string{"the retry window"},
		Confidence: "high",
		Sample: Sample{
			Header: map[string]string{
				"Content-Type":        "application/json",
				"User-Agent":          "CircleCI-Webhook/1.0",
				"Circleci-Event-Type": "workflow-completed",
			},
			Body: sample("circleci.json"),
		},
	}
}

func vercel() Spec {
	return Spec{
		ID:        "vercel",
		Title:     "Vercel",
		Docs:      "https://vercel.com/docs/webhooks/webhooks-api",
		Schemes:   []Scheme{{Algorithm: "hmac-sha1", Header: "X-Vercel-Signature"}},
		EventID:   []Part{FromJSONPaths("$.id")},
		EventType: FromJSONPaths("$.type"),
		Account:   FromJSONPaths("$.payload.team.id", "$.payload.user.id"),
		Retry: Retry{
			Automatic: true,
			Window:    day,
			Schedule:  "exponential for up to 24 hours",
			On:        anyFailure(),
		},
		ResponseTimeout: 30 * time.Second,
		TTL:             2 * day,
		BodyHashSafe:    true,
		Traps: []string{
			"The signature is SHA-1 without a prefix, and there is no timestamp.",
		},
		Evidence:   []string{"hookdeck/webhook-skills, vercel-webhooks"},
		Unverified: []string{"24 hours of retries", "30 seconds for an answer"},
		Confidence: "medium",
		Sample: Sample{
			Header: map[string]string{"Content-Type": "application/json"},
			Body:   sample("vercel.json"),
		},
	}
}

func sentry() Spec {
	return Spec{
		ID:        "sentry",
		Title:     "Sentry",
		Docs:      "https://docs.sentry.io/organization/integrations/integration-platform/webhooks/",
		Schemes:   []Scheme{{Algorithm: "hmac-sha256", Header: "Sentry-Hook-Signature"}},
		EventID:   []Part{{{From: FromBody}}},
		EventType: Part{{From: FromHeader, Name: "Sentry-Hook-Resource"}, {From: FromJSON, Name: "$.action"}},
		Account:   FromJSONPaths("$.installation.uuid"),
		Retry: Retry{
			// Internal integrations are the rule: what fails must not count on a retry.
			Schedule: "published integrations: 3 retries, 5 minutes apart, after a 5xx or a timeout; all others, internal ones included: none",
		},
		TTL: day,
		Traps: []string{
			"Request-ID is made anew for each sending, a retry included: it never names an event.",
			"Sentry-Hook-Timestamp is not signed.",
			"Only published integrations are retried, and not after a 4xx: to an internal one a delivery that is refused is lost.",
			"There is no event ID: the hash of the body stands in for it. An issue that is resolved, reopened and resolved again unchanged within the TTL may give the same bytes; where that matters set a shorter ttl.",
		},
		Evidence: []string{
			"getsentry/sentry, src/sentry/sentry_apps/api/serializers/app_platform_event.py at 10c5f04",
			"getsentry/sentry, src/sentry/sentry_apps/tasks/sentry_apps.py at 000f94c: 3 retries, 5 minutes apart, not after a 4xx",
			"getsentry/sentry, src/sentry/utils/sentry_apps/webhooks.py at 000127d: failures of integrations that are not published are dropped",
		},
		Unverified: []string{
			"the response timeout, which is an option of the server",
			"whether different events can have the same bytes",
		},
		Confidence: "medium",
		Sample: Sample{
			Header: map[string]string{
				"Content-Type":          "application/json",
				"Request-ID":            "7f7d1a0c2f5b4e0b9f0e6c5d4b3a2910",
				"Sentry-Hook-Resource":  "issue",
				"Sentry-Hook-Timestamp": "{unix}",
			},
			Body: sample("sentry.json"),
		},
	}
}

func pagerduty() Spec {
	return Spec{
		ID:    "pagerduty",
		Title: "PagerDuty",
		Docs:  "https://developer.pagerduty.com/docs/webhooks-overview",
		Schemes: []Scheme{{
			Algorithm: "hmac-sha256",
			Header:    "X-PagerDuty-Signature",
			List:      &List{Separator: ",", Assign: "=", Names: []string{"v1"}},
		}},
		EventID:   []Part{FromHeaders("X-Webhook-Id")},
		Fallbacks: [][]Part{{FromJSONPaths("$.event.id")}},
		EventType: FromJSONPaths("$.event.event_type"),
		Account:   FromHeaders("X-Webhook-Subscription"),
		Handshakes: []Handshake{{
			Name:   "pagey.ping",
			Signed: true,
			When:   []Condition{{Source: Source{From: FromJSON, Name: "$.event.event_type"}, Equals: []string{"pagey.ping"}}},
			Answer: &Answer{Status: 202},
		}},
		Retry: Retry{
			Automatic: true,
			Window:    2 * day,
			Schedule:  "for up to 48 hours, in an ordered queue for each resource",
			On:        serverFailure(),
		},
		ResponseTimeout: 5 * time.Second,
		TTL:             4 * day,
		BodyHashSafe:    true,
		Traps: []string{
			"A 4xx other than 429 drops the event at once, and three dropped ones disable the subscription for 24 hours: a duplicate must never get a 4xx.",
			"During a rotation the header lists several v1 signatures.",
			"X-Webhook-Id is repeated for each attempt; it is not signed.",
			"Custom incident actions wait 16 seconds, all else 5.",
		},
		Evidence: []string{
			"PagerDuty/developer-docs, docs/webhooks/02-Behavior.md and 04-Signatures.md at 9422439",
			"go-pagerduty 1.8.0, webhookv3",
		},
		Confidence: "high",
		Sample: Sample{
			Header: map[string]string{
				"Content-Type":           "application/json",
				"User-Agent":             "PagerDuty-Webhook/V3.0",
				"X-Webhook-Id":           "{event_id}",
				"X-Webhook-Subscription": "PRXG3GU",
			},
			Body: sample("pagerduty.json"),
		},
	}
}
