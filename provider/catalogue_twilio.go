package provider

import "time"

// fromFormOrQuery is a part of the fields, which are in the form of a POST and in the query of a GET.
func fromFormOrQuery(names ...string) Part {
	return append(part(FromForm, names), part(FromQuery, names)...)
}

func twilio() Spec {
	const header = "X-Twilio-Signature"
	urlScheme := func(content string) Scheme {
		return Scheme{
			Algorithm: "hmac-sha1", Header: header, Encoding: encodingBase64,
			Content: content, Extended: true, PortVariants: true,
		}
	}
	form, get, bodyHash := urlScheme("{url}{sorted_form}"), urlScheme("{url}"), urlScheme("{url}")
	form.When = []Condition{{Source: Source{From: FromMediaType}, Equals: []string{"application/x-www-form-urlencoded"}}}
	get.When = []Condition{{Source: Source{From: FromMethod}, Equals: []string{"GET"}}}
	get.EmptyBody = true
	bodyHash.When = []Condition{{Source: Source{From: FromQuery, Name: "bodySHA256"}}}
	bodyHash.BodyHash = &Source{From: FromQuery, Name: "bodySHA256"}
	return Spec{
		ID:      "twilio",
		Title:   "Twilio",
		Docs:    "https://www.twilio.com/docs/usage/webhooks/webhooks-security",
		Methods: []string{"POST", "GET"},
		Schemes: []Scheme{form, get, bodyHash},
		EventID: []Part{FromHeaders("I-Twilio-Idempotency-Token")},
		// A SID alone would swallow every change of status, and a call's SID with its status every step of a menu.
		Fallbacks: [][]Part{
			{fromFormOrQuery("MessageStatus", "SmsStatus"), fromFormOrQuery("MessageSid", "SmsSid")},
			{fromFormOrQuery("SequenceNumber"), fromFormOrQuery("CallStatus"), fromFormOrQuery("CallSid")},
		},
		EventType: fromFormOrQuery("MessageStatus", "SmsStatus", "CallStatus"),
		Account:   fromFormOrQuery("AccountSid"),
		Batch: &Batch{
			Paths:     []string{"$"},
			EventID:   []Part{FromJSONPaths("$.id")},
			EventType: FromJSONPaths("$.type"),
			Account:   FromJSONPaths("$.data.accountSid"),
		},
		Retry: Retry{
			// Once an answer has come, nothing is retried, unless the URL's fragment says so.
			Schedule: "one retry where no connection came about, within 15 seconds; the fragment #rc=0..5&rp=… of the URL changes that; Event Streams for up to 4 hours",
		},
		ResponseTimeout: 15 * time.Second,
		TTL:             day,
		Replay:          true,
		Traps: []string{
			"The public URL is signed, as it was before any rewrite: behind another proxy set public_url. It is tried with and without the default port.",
			"The SID of a message or call is the same in all its status changes: alone it swallows them.",
			"A duplicate must get the first answer's TwiML: an empty 200 ends the call.",
			"Twilio's SDKs disagree about a form field that is given several times: the one for Node sorts its distinct values, the one for Go takes the first; here it is as in Node.",
			"JSON is not signed itself: the query's bodySHA256 is, and must be the body's hash.",
			"The fragment of the URL is neither sent nor signed.",
			"There is no timestamp: only the ID protects against replays.",
			"Event Streams come as arrays, in which each event has an ID of its own.",
		},
		Evidence: []string{
			"npm twilio 6.2.0, lib/webhooks/webhooks.js",
			"twilio-go 1.31.0, client/request_validator.go",
			"https://www.twilio.com/docs/usage/webhooks/webhooks-connection-overrides",
			"https://www.twilio.com/docs/events/event-delivery-and-duplication",
			"documentation of Twilio Agent Connect: the idempotency token deduplicates retries",
		},
		Unverified: []string{"whether every product sends the idempotency token"},
		Confidence: "high",
		Sample: Sample{
			Header: map[string]string{
				"Content-Type":               "application/x-www-form-urlencoded; charset=UTF-8",
				"User-Agent":                 "TwilioProxy/1.1",
				"I-Twilio-Idempotency-Token": "{event_id}",
			},
			Body: sample("twilio.form"),
		},
	}
}

func sendgrid() Spec {
	return Spec{
		ID:    "sendgrid",
		Title: "SendGrid Event Webhook",
		Docs:  "https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/getting-started-event-webhook-security-features",
		Schemes: []Scheme{{
			Algorithm: "ecdsa-p256-sha256",
			Header:    "X-Twilio-Email-Event-Webhook-Signature",
			Encoding:  encodingBase64,
			Content:   "{timestamp}{body}",
			Timestamp: &Timestamp{From: FromHeader, Name: "X-Twilio-Email-Event-Webhook-Timestamp"},
		}},
		Tolerance: 10 * time.Minute,
		Batch: &Batch{
			Paths:     []string{"$"},
			EventID:   []Part{FromJSONPaths("$.sg_event_id")},
			Fallbacks: [][]Part{{{{From: FromBody}}}},
			EventType: FromJSONPaths("$.event"),
		},
		Retry: Retry{
			Automatic: true,
			Window:    day,
			Schedule:  "at growing intervals for up to 24 hours after the event",
			On:        anyFailure(),
		},
		TTL: 3 * day,
		Traps: []string{
			"The body ends with a line break after the array: trimming it breaks the signature.",
			"A retried batch may be grouped differently: each event is deduplicated by itself.",
			"sg_event_id is not in every element; where it is absent the hash of the element stands in for it.",
			"Events repeat for longer than the 24 hours of the documentation: up to 29 hours were reported, and one event 46 times.",
			"Events are unsigned unless the feature is switched on.",
			"The secret is a public key, in base64 without PEM's armour.",
			"No tolerance is published: if retries should keep their first timestamp, set tolerance 25h; the IDs protect against replays for 3 days.",
		},
		Evidence: []string{
			"npm @sendgrid/eventwebhook 8.0.0",
			"sendgrid-go 3.16.1, helpers/eventwebhook, with the official vector",
			"docs.sendgrid.com, troubleshooting: 24 hours, sg_event_id",
			"https://github.com/sendgrid/docs/issues/2933",
		},
		Unverified: []string{"the size of a batch", "the response timeout", "whether each attempt is signed anew"},
		Confidence: "high",
		Sample: Sample{
			Header: map[string]string{"Content-Type": "application/json", "User-Agent": "SendGrid Event API"},
			Body:   sample("sendgrid.json"),
		},
	}
}
