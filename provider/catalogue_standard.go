package provider

import "time"

// svixSender is an entry of a service that sends through Svix, with Svix's headers, schedule and timeout.
func svixSender(id, title, docs string) Spec {
	s := svix()
	return Spec{
		ID:              id,
		Title:           title,
		Docs:            docs,
		Schemes:         standardSchemes("Svix")[:1],
		Tolerance:       s.Tolerance,
		EventID:         []Part{FromHeaders("Svix-Id")},
		EventType:       FromJSONPaths("$.type"),
		Retry:           s.Retry,
		ResponseTimeout: s.ResponseTimeout,
		TTL:             s.TTL,
		Confidence:      "high",
		Sample: Sample{
			Header: map[string]string{
				"Content-Type": "application/json",
				"User-Agent":   s.Sample.Header["User-Agent"],
				"Svix-Id":      "{event_id}",
			},
			Body: sample(id + ".json"),
		},
	}
}

func clerk() Spec {
	s := svixSender("clerk", "Clerk", "https://clerk.com/docs/guides/development/webhooks/overview")
	s.Traps = []string{
		"Clerk sends through Svix: the secret is base64 behind whsec_, and the event's ID is the header svix-id.",
		"data.id is the user or other object, the same in every event about it.",
	}
	s.Evidence = []string{"hookdeck/webhook-skills, clerk"}
	return s
}

func resend() Spec {
	s := svixSender("resend", "Resend", "https://resend.com/docs/webhooks/verify-webhooks-requests")
	s.Retry.Manual = "replay of failed and of succeeded messages; keeps the ID"
	s.Traps = []string{
		"Resend sends through Svix: the secret is base64 behind whsec_, and the event's ID is the header svix-id.",
		"data.email_id is the same in every event about one message: sent, delivered, opened.",
		"Succeeded messages can be replayed too, and are duplicates then.",
	}
	s.Evidence = []string{
		"npm resend 6.38.0, webhooks.verify",
		"https://resend.com/docs/webhooks/retries-and-replays",
	}
	return s
}

func openai() Spec {
	return Spec{
		ID:        "openai",
		Title:     "OpenAI",
		Docs:      "https://platform.openai.com/docs/guides/webhooks",
		Schemes:   standardSchemes("Webhook")[:1],
		Tolerance: 300 * time.Second,
		EventID:   []Part{FromHeaders("Webhook-Id")},
		Fallbacks: [][]Part{{FromJSONPaths("$.id")}},
		EventType: FromJSONPaths("$.type"),
		Retry: Retry{
			Automatic: true,
			Window:    3 * day,
			Schedule:  "exponential for up to 72 hours",
			On:        anyFailure(),
		},
		TTL:          6 * day,
		BodyHashSafe: true,
		Traps: []string{
			"OpenAI's SDK also accepts signatures without v1, and secrets without whsec_; here the header is as Standard Webhooks writes it.",
			"3xx counts as a failure.",
		},
		Evidence: []string{
			"npm openai 6.49.0, resources/webhooks",
			"hookdeck.com, guide to OpenAI",
		},
		Confidence: "high",
		Sample: Sample{
			Header: map[string]string{"Content-Type": "application/json", "User-Agent": "OpenAI/1.0", "Webhook-Id": "{event_id}"},
			Body:   sample("openai.json"),
		},
	}
}
