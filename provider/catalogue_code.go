package provider

import "time"

func gitlab() Spec {
	signing := standardSchemes("Webhook")[0]
	signing.KeyPrefixRequired = true // all other secrets are secret tokens
	return Spec{
		ID:        "gitlab",
		Title:     "GitLab",
		Docs:      "https://docs.gitlab.com/user/project/integrations/webhooks/",
		Schemes:   []Scheme{signing, {Algorithm: "token", Header: "X-Gitlab-Token"}},
		Tolerance: 300 * time.Second,
		// The signed webhook-id is the Idempotency-Key; without a signing token only the latter is there.
		EventID:   []Part{{{From: FromSignedID}, {From: FromHeader, Name: "Idempotency-Key"}}},
		EventType: Part{{From: FromHeader, Name: "X-Gitlab-Event"}, {From: FromJSON, Name: "$.object_kind"}},
		Account:   Part{{From: FromJSON, Name: "$.project.id"}, {From: FromHeader, Name: "X-Gitlab-Instance"}},
		Retry: Retry{
			Schedule: "none: a hook that fails is disabled for a growing time of up to 24 hours",
			Manual:   "resend from the list of recent events or the API; keeps the Idempotency-Key",
		},
		ResponseTimeout: 10 * time.Second,
		TTL:             7 * day,
		MaxBody:         25 << 20,
		Traps: []string{
			"X-Gitlab-Webhook-UUID is random for each HTTP call: it never names an event.",
			"X-Gitlab-Event-UUID is shared by all hooks and by the events that one trigger causes in a chain: it names no delivery.",
			"GitLab does not retry: the 24 hours that some pages name are how long a failing hook is disabled.",
			"GitLab before 17.4 sends no Idempotency-Key; its bodies can repeat, after a push forth and back say, so they are passed on undeduplicated.",
			"With a secret token alone the body is not signed.",
			"Where a hook has both tokens the signature decides, so the signing token must be configured.",
			"3xx counts as a success.",
		},
		Evidence: []string{
			"gitlabhq/gitlabhq, app/services/web_hook_service.rb at 017a6c1",
			"gitlab-org/gitlab merge requests 160952 (Idempotency-Key) and 230944 (signing token)",
			"public receivers that confirm whsec_ and base64",
		},
		Unverified: []string{"the first version in which signing tokens are on by default"},
		Confidence: "high",
		Sample: Sample{
			Header: map[string]string{
				"Content-Type":          "application/json",
				"User-Agent":            "GitLab/18.5.1-ee",
				"Idempotency-Key":       "{event_id}",
				"X-Gitlab-Event":        "Push Hook",
				"X-Gitlab-Event-UUID":   "13792a34-cac6-4fda-95a8-c58e00a3954e",
				"X-Gitlab-Instance":     "https://gitlab.example.com",
				"X-Gitlab-Webhook-UUID": "02affd2d-2cba-4033-917d-ec22d5dc4b38",
			},
			Body: sample("gitlab.json"),
		},
	}
}

func bitbucket() Spec {
	return Spec{
		ID:        "bitbucket",
		Title:     "Bitbucket Cloud",
		Docs:      "https://support.atlassian.com/bitbucket-cloud/docs/manage-webhooks/",
		Schemes:   []Scheme{{Algorithm: "hmac-sha256", Header: "X-Hub-Signature", Prefix: "sha256="}},
		EventID:   []Part{FromHeaders("X-Request-UUID")},
		EventType: FromHeaders("X-Event-Key"),
		Account:   FromHeaders("X-Hook-UUID"),
		Retry: Retry{
			Automatic: true,
			Window:    10 * time.Minute,
			Attempts:  3,
			Schedule:  "2 more attempts after a 5xx",
			On:        []string{"5xx"},
		},
		ResponseTimeout: 10 * time.Second,
		TTL:             day,
		MaxBody:         256 << 10,
		Traps: []string{
			"X-Hub-Signature carries SHA-256 here, where GitHub and Intercom put SHA-1 under that name.",
			"X-Hook-UUID names the webhook, not the event.",
			"Only a 5xx is retried: a 4xx loses the event.",
			"Events larger than 256 KB are silently not sent.",
			"The header that names the event is not signed.",
		},
		Evidence: []string{"https://support.atlassian.com/bitbucket-cloud/docs/troubleshoot-webhooks/: 2 more attempts, 10 s, 256 KB"},
		Unverified: []string{
			"X-Request-UUID stays the same over attempts; X-Attempt-Number suggests it",
			"X-Request-UUID on a resend by hand",
		},
		Confidence: "medium",
		Sample: Sample{
			Header: map[string]string{
				"Content-Type":     "application/json",
				"User-Agent":       "Bitbucket-Webhooks/2.0",
				"X-Attempt-Number": "1",
				"X-Event-Key":      "repo:push",
				"X-Hook-UUID":      "5f3f0b3c-1f4c-4f5b-9a0d-6f2f1c8a7e11",
				"X-Request-UUID":   "{event_id}",
			},
			Body: sample("bitbucket.json"),
		},
	}
}

func linear() Spec {
	return Spec{
		ID:    "linear",
		Title: "Linear",
		Docs:  "https://linear.app/developers/webhooks",
		Schemes: []Scheme{{
			Algorithm: "hmac-sha256",
			Header:    "Linear-Signature",
			Timestamp: &Timestamp{From: FromJSON, Name: "$.webhookTimestamp", Format: FormatUnixMS},
		}},
		Tolerance: 60 * time.Second,
		EventID:   []Part{FromHeaders("Linear-Delivery")},
		Fallbacks: [][]Part{{
			FromJSONPaths("$.type"), FromJSONPaths("$.action"), FromJSONPaths("$.data.id"), FromJSONPaths("$.createdAt"),
		}},
		EventType: Part{{From: FromHeader, Name: "Linear-Event"}, {From: FromJSON, Name: "$.type"}},
		Account:   FromJSONPaths("$.organizationId"),
		Retry: Retry{
			Automatic: true,
			Window:    7*hour + time.Minute,
			Attempts:  4,
			Schedule:  "3 retries: after 1 minute, 1 hour and 6 hours",
			On:        anyFailure(),
		},
		ResponseTimeout: 5 * time.Second,
		TTL:             day,
		Traps: []string{
			"webhookId names the webhook's configuration, not the event.",
			"The signed time is webhookTimestamp in the body, in milliseconds; the header Linear-Timestamp is not signed and ignored.",
			"Each attempt probably has a webhookTimestamp of its own, so a hash of the body does not recognise a retry.",
			"The header that names the event is not signed.",
			"Only the answer 200 counts, within 5 seconds.",
		},
		Evidence: []string{"npm @linear/sdk 98.0.0, webhooks client: 60 s in both directions"},
		Unverified: []string{
			"the retry schedule",
			"Linear-Delivery stays the same over retries",
		},
		Confidence: "medium",
		Sample: Sample{
			Header: map[string]string{
				"Content-Type":     "application/json; charset=utf-8",
				"User-Agent":       "Linear-Webhook",
				"Linear-Delivery":  "{event_id}",
				"Linear-Event":     "Issue",
				"Linear-Timestamp": "{unix_ms}",
			},
			Body: sample("linear.json"),
		},
	}
}

func jira() Spec {
	return Spec{
		ID:        "jira",
		Title:     "Jira Cloud",
		Docs:      "https://developer.atlassian.com/cloud/jira/platform/webhooks/",
		Schemes:   []Scheme{{Algorithm: "hmac-sha256", Header: "X-Hub-Signature", Prefix: "sha256="}},
		EventID:   []Part{FromHeaders("X-Atlassian-Webhook-Identifier")},
		Fallbacks: [][]Part{{FromJSONPaths("$.timestamp"), FromJSONPaths("$.webhookEvent"), FromJSONPaths("$.issue.id")}},
		EventType: FromJSONPaths("$.webhookEvent"),
		Retry: Retry{
			Automatic: true,
			Window:    30 * time.Minute,
			Attempts:  6,
			Schedule:  "up to 5 retries; a delivery may be up to 30 minutes late",
			On:        []string{"408", "409", "425", "429", "5xx", "timeout"},
		},
		ResponseTimeout: 20 * time.Second,
		TTL:             day,
		Traps: []string{
			"Webhooks are signed only where a secret is set.",
			"Connect apps authenticate with a JWT in Authorization instead, which this entry does not verify.",
			"X-Atlassian-Webhook-Retry counts retries and says nothing about the first attempt.",
			"The header that names the event is not signed.",
		},
		Evidence: []string{
			"https://community.developer.atlassian.com/t/30554",
			"hookdeck.com, guide to Jira: 5 s to connect, 20 s to answer",
		},
		Unverified: []string{"the number of retries"},
		Confidence: "medium",
		Sample: Sample{
			Header: map[string]string{
				"Content-Type":                   "application/json; charset=utf-8",
				"User-Agent":                     "Atlassian Webhook HTTP Client",
				"X-Atlassian-Webhook-Identifier": "{event_id}",
			},
			Body: sample("jira.json"),
		},
	}
}
