package provider

import "time"

func hookdeck() Spec {
	return Spec{
		ID:    "hookdeck",
		Title: "Hookdeck Event Gateway",
		Docs:  "https://hookdeck.com/docs/authentication",
		Schemes: []Scheme{{
			Algorithm: "hmac-sha256",
			Header:    "X-Hookdeck-Signature",
			Also:      []string{"X-Hookdeck-Signature-2"},
			Encoding:  encodingBase64,
		}},
		EventID:   []Part{FromHeaders("X-Hookdeck-EventID")},
		EventType: FromHeaders("X-Hookdeck-Source-Name"),
		Account:   FromHeaders("X-Hookdeck-Destination-Name", "X-Hookdeck-Source-Name"),
		Retry: Retry{
			Automatic: true,
			Window:    7 * day,
			Attempts:  51,
			Schedule:  "up to 50 retries, linear or exponential, as each connection configures them",
			On:        anyFailure(),
			Manual:    "retry, bulk retry and unpause, any number of times; keep the event ID",
		},
		ResponseTimeout: 60 * time.Second,
		TTL:             14 * day,
		Traps: []string{
			"The prefix x-hookdeck- can be changed for a project: then signature and id must be configured.",
			"The original provider's headers come along; a delayed Stripe-Signature no longer passes its own tolerance, so verify Hookdeck's signature instead.",
			"x-hookdeck-verified: false means that Hookdeck could not verify the source.",
			"x-hookdeck-requestid names the request at the source, from which each connection makes an event of its own: it is no event ID.",
			"During a rotation x-hookdeck-signature-2 carries the signature with the other secret: either may match.",
			"The number and the times of retries are the customer's choice: the ttl must fit them.",
		},
		Evidence: []string{
			"npm @hookdeck/sdk 0.4.0, webhooks/helpers.js",
			"hookdeck/webhook-skills, hookdeck-event-gateway-webhooks",
			"https://hookdeck.com/docs/retries: 50",
		},
		Unverified: []string{"60 s for an answer", "a week as the limit of retries"},
		Confidence: "high",
		Sample: Sample{
			Header: map[string]string{
				"Content-Type":                "application/json",
				"X-Hookdeck-Attempt-Count":    "1",
				"X-Hookdeck-EventID":          "{event_id}",
				"X-Hookdeck-RequestID":        "req_aB3dE5fG7hJ9kL1mN2pQ",
				"X-Hookdeck-Source-Name":      "shop-orders",
				"X-Hookdeck-Verified":         "true",
				"X-Hookdeck-Will-Retry-After": "60",
			},
			Body: sample("hookdeck.json"),
		},
	}
}

func gethook() Spec {
	return Spec{
		ID:    "gethook",
		Title: "GetHook",
		Docs:  "https://docs.gethook.to/guide/authentication",
		Schemes: []Scheme{{
			Algorithm: "hmac-sha256",
			Header:    "Webhook-Signature",
			List:      &List{Separator: ",", Assign: "=", Names: []string{"v1"}},
			Content:   "{timestamp}.{body}",
			Timestamp: &Timestamp{From: FromElement, Name: "t"},
		}},
		Tolerance: 300 * time.Second,
		EventID:   []Part{FromHeaders("X-Webhook-Id", "X-Event-Id", "Idempotency-Key")},
		EventType: FromHeaders("X-Event-Type"),
		Retry: Retry{
			Automatic:    true,
			Schedule:     "exponential, with a policy for each route",
			On:           anyFailure(),
			Manual:       "replay of any stored event, kept for a day, or for 30 days in the plan Pro",
			ManualWindow: 30 * day,
		},
		ResponseTimeout: 30 * time.Second,
		TTL:             7 * day,
		MaxBody:         5 << 20,
		Traps: []string{
			"X-Webhook-Id is documented for what is sent to GetHook; nothing says that it comes along to a destination. Without any ID the delivery passes undeduplicated.",
			"X-Request-Id is not read: proxies on the way set one of their own for each attempt.",
			"A ttl of 31d treats replays in the plan Pro as duplicates too.",
			"The official SDKs manage GetHook and verify nothing.",
		},
		Evidence: []string{
			"https://docs.gethook.to/guide/authentication",
			"https://docs.gethook.to/reference/ingest",
			"https://docs.gethook.to/reference/destinations",
			"gethooklabs/gethook-go at 622a1c2",
		},
		Unverified: []string{
			"every header of a delivery but Webhook-Signature",
			"the retry schedule and window",
			"which IDs stay the same over retries and replays",
		},
		Confidence: "medium",
		Sample: Sample{
			Header: map[string]string{"Content-Type": "application/json", "X-Event-Type": "order.created", "X-Webhook-Id": "{event_id}"},
			Body:   sample("gethook.json"),
		},
	}
}
