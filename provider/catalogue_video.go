package provider

import "time"

func twitch() Spec {
	const messageType = "Twitch-Eventsub-Message-Type"
	return Spec{
		ID:    "twitch",
		Title: "Twitch EventSub",
		Docs:  "https://dev.twitch.tv/docs/eventsub/handling-webhook-events/",
		Schemes: []Scheme{{
			Algorithm: "hmac-sha256",
			Header:    "Twitch-Eventsub-Message-Signature",
			Prefix:    "sha256=",
			Content:   "{id}{timestamp}{body}",
			IDHeader:  "Twitch-Eventsub-Message-Id",
			Timestamp: &Timestamp{From: FromHeader, Name: "Twitch-Eventsub-Message-Timestamp", Format: FormatRFC3339},
		}},
		Tolerance: 10 * time.Minute,
		EventID:   []Part{FromHeaders("Twitch-Eventsub-Message-Id")},
		EventType: FromHeaders("Twitch-Eventsub-Subscription-Type"),
		Account:   FromJSONPaths("$.event.broadcaster_user_id"),
		Handshakes: []Handshake{{
			Name:   "webhook_callback_verification",
			Signed: true,
			When:   []Condition{{Source: Source{From: FromHeader, Name: messageType}, Equals: []string{"webhook_callback_verification"}}},
			Answer: &Answer{Body: "{json:$.challenge}"},
		}},
		Retry: Retry{
			Automatic: true,
			Window:    10 * time.Minute,
			Schedule:  "sent again when Twitch is unsure that it arrived; the schedule is not published",
			On:        anyFailure(),
		},
		TTL: day,
		Traps: []string{
			"The timestamp has nanoseconds.",
			"Messages older than 10 minutes are to be ignored.",
			"webhook_callback_verification must be answered with the challenge as text and is never deduplicated; revocation is an event.",
			"Twitch-Eventsub-Message-Retry counts attempts and says nothing about the first one.",
		},
		Evidence: []string{
			"https://dev.twitch.tv/docs/eventsub/handling-webhook-events",
			"Khastor/Network issue 3, quoting the handling of duplicates",
		},
		Unverified: []string{"on which answers, when and for how long Twitch retries"},
		Confidence: "medium",
		Sample: Sample{
			Header: map[string]string{
				"Content-Type":                         "application/json",
				"Twitch-Eventsub-Message-Id":           "{event_id}",
				"Twitch-Eventsub-Message-Retry":        "0",
				messageType:                            "notification",
				"Twitch-Eventsub-Subscription-Type":    "channel.follow",
				"Twitch-Eventsub-Subscription-Version": "2",
			},
			Body: sample("twitch.json"),
		},
	}
}

func zoom() Spec {
	return Spec{
		ID:    "zoom",
		Title: "Zoom",
		Docs:  "https://developers.zoom.us/docs/api/webhooks/",
		Schemes: []Scheme{{
			Algorithm: "hmac-sha256",
			Header:    "X-Zm-Signature",
			Prefix:    "v0=",
			Content:   "v0:{timestamp}:{body}",
			Timestamp: &Timestamp{From: FromHeader, Name: "X-Zm-Request-Timestamp"},
		}},
		Tolerance: 300 * time.Second,
		EventID:   []Part{{{From: FromBody}}},
		EventType: FromJSONPaths("$.event"),
		Account:   FromJSONPaths("$.payload.account_id"),
		Handshakes: []Handshake{{
			Name:   "endpoint.url_validation",
			Signed: true,
			When:   []Condition{{Source: Source{From: FromJSON, Name: "$.event"}, Equals: []string{"endpoint.url_validation"}}},
			Answer: &Answer{Body: `{"plainToken":"{json:$.payload.plainToken}","encryptedToken":"{mac:json:$.payload.plainToken}"}`},
		}},
		Retry: Retry{
			Automatic: true,
			Window:    85 * time.Minute,
			Attempts:  4,
			Schedule:  "3 retries: 5 minutes after the first attempt, 20 more after that, 60 more after that",
			On:        anyFailure(),
		},
		ResponseTimeout: 3 * time.Second,
		TTL:             day,
		BodyHashSafe:    true,
		Traps: []string{
			"There is no event ID: the hash of the body, which contains event and event_ts, stands in for it.",
			"endpoint.url_validation comes again and again and must be answered with the encrypted token each time; it is never deduplicated.",
			"Zoom's own Rivet signs the JSON as it writes it anew, not the bytes, and knows no age limit; here the bytes count.",
			"Some pages say 5, 30 and 90 minutes; the sum of 85 is Zoom's.",
		},
		Evidence: []string{
			"npm @zoom/rivet 0.4.0",
			"devsupport.zoom.us, delays of webhooks",
		},
		Unverified: []string{"a retry has the same bytes"},
		Confidence: "medium",
		Sample: Sample{
			Header: map[string]string{"Content-Type": "application/json; charset=utf-8", "User-Agent": "Zoom Marketplace/1.0a"},
			Body:   sample("zoom.json"),
		},
	}
}

func mux() Spec {
	return Spec{
		ID:    "mux",
		Title: "Mux",
		Docs:  "https://www.mux.com/docs/core/verify-webhook-signatures",
		Schemes: []Scheme{{
			Algorithm: "hmac-sha256",
			Header:    "Mux-Signature",
			List:      &List{Separator: ",", Assign: "=", Names: []string{"v1"}},
			Content:   "{timestamp}.{body}",
			Timestamp: &Timestamp{From: FromElement, Name: "t"},
		}},
		Tolerance: 300 * time.Second,
		EventID:   []Part{FromJSONPaths("$.id")},
		EventType: FromJSONPaths("$.type"),
		Account:   FromJSONPaths("$.environment.id"),
		Retry: Retry{
			Automatic: true,
			Window:    day,
			Schedule:  "for 24 hours",
			On:        anyFailure(),
		},
		TTL: 2 * day,
		Traps: []string{
			"Each attempt may stand in the body's attempts, so a hash of the body may change; the event's ID does not.",
		},
		Evidence:   []string{"npm @mux/mux-node 15.3.0"},
		Unverified: []string{"24 hours of retries", "the member attempts in the body"},
		Confidence: "medium",
		Sample: Sample{
			Header: map[string]string{"Content-Type": "application/json", "User-Agent": "Mux-Webhooks"},
			Body:   sample("mux.json"),
		},
	}
}
