package provider

import "time"

func chargebee() Spec {
	const window = 78*hour + 38*time.Minute
	return Spec{
		ID:        "chargebee",
		Title:     "Chargebee",
		Docs:      "https://www.chargebee.com/docs/billing/2.0/site-configuration/webhook_settings",
		Schemes:   []Scheme{{Algorithm: "basic", Header: "Authorization"}},
		EventID:   []Part{FromJSONPaths("$.id")},
		EventType: FromJSONPaths("$.event_type"),
		Retry: Retry{
			Automatic: true,
			Window:    window,
			Attempts:  8,
			Schedule:  "7 retries: after 2, 6 and 30 minutes, 1 and 5 hours, 1 and 2 days",
			On:        anyFailure(),
			Manual:    "resend from the user interface; keeps the event ID",
		},
		ResponseTimeout: 60 * time.Second,
		TTL:             2 * window,
		BodyHashSafe:    true,
		Traps: []string{
			"There is no signature: a user name and a password authenticate, and the body can be anything.",
			"One page says both 2 days, and 3 days and 7 hours: the intervals add up to 3 days, 6 hours and 38 minutes.",
		},
		Evidence: []string{
			"npm chargebee 3.33.0, resources/webhook/auth.js",
			"support.chargebee.com, 257941",
			"apidocs.chargebee.com, event: keep an idempotency window of 3 days and 7 hours",
		},
		Confidence: "high",
		Sample: Sample{
			Header: map[string]string{"Content-Type": "application/json;charset=UTF-8", "User-Agent": "ChargeBee"},
			Body:   sample("chargebee.json"),
		},
	}
}

func postmark() Spec {
	return Spec{
		ID:      "postmark",
		Title:   "Postmark",
		Docs:    "https://postmarkapp.com/developer/webhooks/webhooks-overview",
		Schemes: []Scheme{{Algorithm: "basic", Header: "Authorization"}},
		// One message has several events, and several of a kind: opens, clicks, recipients.
		EventID: []Part{
			FromJSONPaths("$.RecordType"), FromJSONPaths("$.Recipient", "$.Email"),
			FromJSONPaths("$.ID", "$.ReceivedAt", "$.DeliveredAt", "$.ChangedAt", "$.BouncedAt"), FromJSONPaths("$.MessageID"),
		},
		EventType: FromJSONPaths("$.RecordType"),
		Account:   FromJSONPaths("$.ServerID"),
		Retry: Retry{
			Automatic: true,
			Window:    38000 * time.Second,
			Attempts:  11,
			Schedule:  "bounces and inbound mail: 10 retries, after 1 minute up to 6 hours; all else after 1, 5 and 15 minutes",
			On:        anyFailure(),
			Except:    []string{"403"},
		},
		ResponseTimeout: 120 * time.Second,
		TTL:             day,
		BodyHashSafe:    true,
		Traps: []string{
			"There is no signature: a user name and a password in the URL, or a header of one's own, authenticate, and the body can be anything.",
			"MessageID names the message, not the event: opens, clicks and several recipients share it.",
			"403 ends the retries.",
			"Inbound mail has no RecordType: the hash of the body names it.",
		},
		Evidence:   []string{"hookdeck/webhook-skills, postmark"},
		Unverified: []string{"the retries", "the times that keep events of one message apart"},
		Confidence: "medium",
		Sample: Sample{
			Header: map[string]string{"Content-Type": "application/json", "User-Agent": "Postmark"},
			Body:   sample("postmark.json"),
		},
	}
}

func recurly() Spec {
	const window = 262308 * time.Second
	return Spec{
		ID:    "recurly",
		Title: "Recurly",
		Docs:  "https://docs.recurly.com/recurly-subscriptions/docs/signature-verification-for-webhooks",
		Schemes: []Scheme{{
			Algorithm: "hmac-sha256",
			Header:    "Recurly-Signature",
			List:      &List{Separator: ",", Names: []string{"*"}},
			Content:   "{timestamp}.{body}",
			Timestamp: &Timestamp{From: FromElement, Name: "1", Format: FormatUnixAuto},
		}},
		Tolerance: 300 * time.Second,
		EventID:   []Part{FromHeaders("Recurly-Notification-Id")},
		EventType: FromJSONPaths("$.event_type"),
		Account:   FromJSONPaths("$.site_id"),
		Retry: Retry{
			Automatic: true,
			Window:    window,
			Attempts:  11,
			Schedule:  "up to 10 retries, the x-th after 10 + x·2^(x+5) seconds",
			On:        anyFailure(),
		},
		TTL:          2 * window,
		BodyHashSafe: true,
		Traps: []string{
			"The header has no names: a timestamp, then one signature, or two for 24 hours after a rotation.",
			"The timestamp is in milliseconds; some receivers take it for seconds, so its size decides.",
			"XML webhooks are not signed.",
		},
		Evidence: []string{
			"docs.recurly.com, automatic retries",
			"public receivers: the timestamp in milliseconds, XML webhooks unsigned, the header recurly-notification-id",
		},
		Unverified: []string{"whether recurly-notification-id stays the same over retries", "the response timeout"},
		Confidence: "medium",
		Sample: Sample{
			Header: map[string]string{"Content-Type": "application/json", "User-Agent": "Recurly Webhooks/2.0", "Recurly-Notification-Id": "{event_id}"},
			Body:   sample("recurly.json"),
		},
	}
}

func docusign() Spec {
	return Spec{
		ID:    "docusign",
		Title: "DocuSign Connect",
		Docs:  "https://developers.docusign.com/platform/webhooks/connect/hmac/",
		Schemes: []Scheme{{
			Algorithm: "hmac-sha256",
			Header:    "X-DocuSign-Signature-1",
			Also:      numbered("X-DocuSign-Signature-", 2, 100),
			Encoding:  encodingBase64,
		}},
		EventID: []Part{
			FromJSONPaths("$.event"), FromJSONPaths("$.generatedDateTime"),
			FromJSONPaths("$.data.recipientId", "$.data.accountId"), FromJSONPaths("$.data.envelopeId"),
		},
		EventType: FromJSONPaths("$.event"),
		Account:   FromJSONPaths("$.data.accountId"),
		Retry: Retry{
			Automatic: true,
			Window:    15 * day,
			Schedule:  "for up to 15 days",
			On:        anyFailure(),
		},
		ResponseTimeout: 100 * time.Second,
		TTL:             30 * day,
		Traps: []string{
			"retryCount stands in the body, so a hash of the body changes with each attempt.",
			"Each of up to 100 keys signs in a numbered header of its own: any of them may match.",
			"Events of two recipients can come at the same time: the recipient belongs to the identity.",
			"The legacy XML format has no such identity.",
		},
		Evidence:   []string{"ngrok/ngrok-docs, integration of DocuSign"},
		Unverified: []string{"15 days of retries", "100 s for an answer", "data.recipientId in events of recipients"},
		Confidence: "low",
		Sample: Sample{
			Header: map[string]string{"Content-Type": "application/json; charset=utf-8"},
			Body:   sample("docusign.json"),
		},
	}
}
