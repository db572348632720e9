package provider

import "time"

func mailgun() Spec {
	scheme := func(from, timestamp, token, signature string) Scheme {
		return Scheme{
			Algorithm:    "hmac-sha256",
			Signature:    &Source{From: from, Name: signature},
			Content:      "{timestamp}{" + from + ":" + token + "}",
			Extended:     true,
			BodyUnsigned: true,
			Timestamp:    &Timestamp{From: from, Name: timestamp},
		}
	}
	return Spec{
		ID:    "mailgun",
		Title: "Mailgun",
		Docs:  "https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/securing-webhooks",
		Schemes: []Scheme{
			scheme(FromJSON, "$.signature.timestamp", "$.signature.token", "$.signature.signature"),
			scheme(FromForm, "timestamp", "token", "signature"), // routes
		},
		Tolerance: 300 * time.Second,
		EventID:   []Part{FromJSONPaths("$.event-data.id")},
		Fallbacks: [][]Part{{{{From: FromJSON, Name: "$.signature.token"}, {From: FromForm, Name: "token"}}}},
		EventType: FromJSONPaths("$.event-data.event"),
		Account:   Part{{From: FromJSON, Name: "$.event-data.domain.name"}, {From: FromForm, Name: "domain"}},
		Retry: Retry{
			Automatic: true,
			Window:    8*hour + 5*time.Minute,
			Attempts:  8,
			Schedule:  "7 retries: after 10, 10, 15 and 30 minutes and 1, 2 and 4 hours",
			On:        anyFailure(),
			Except:    []string{"406"},
		},
		TTL: day,
		Traps: []string{
			"The body is not signed: whoever has seen one timestamp, token and signature can send any event with them, as long as the tolerance lasts.",
			"A retry that kept its first timestamp would be stale: if such come, set tolerance 9h, at the price of the trap above.",
			"Only the answer 200 counts; 406 refuses an event without retries.",
			"Routes send forms; those with attachments are multipart/form-data, which is not read.",
		},
		Evidence: []string{
			"mailgun-go v4.23.0",
			"https://help.mailgun.com/hc/en-us/articles/202236504",
		},
		Unverified: []string{"whether a retry repeats the token, and whether it is signed anew"},
		Confidence: "high",
		Sample: Sample{
			Header: map[string]string{"Content-Type": "application/json", "User-Agent": "Go-http-client/1.1"},
			Body:   sample("mailgun.json"),
		},
	}
}

func adyen() Spec {
	const item = "$.NotificationRequestItem."
	return Spec{
		ID:    "adyen",
		Title: "Adyen",
		Docs:  "https://docs.adyen.com/development-resources/webhooks/verify-hmac-signatures",
		Schemes: []Scheme{
			{ // platforms, management
				Algorithm:   "hmac-sha256",
				Header:      "HmacSignature",
				When:        []Condition{{Source: Source{From: FromJSON, Name: "$.notificationItems[0].NotificationRequestItem.eventCode"}, Absent: true}},
				Encoding:    encodingBase64,
				KeyEncoding: encodingHex,
			},
			{ // classic
				Algorithm:   "hmac-sha256",
				Signature:   &Source{From: FromJSON, Name: item + "additionalData.hmacSignature"},
				Each:        "$.notificationItems",
				Encoding:    encodingBase64,
				KeyEncoding: encodingHex,
				Content: "{json?:" + item + "pspReference}:{json?:" + item + "originalReference}:{json?:" + item + "merchantAccountCode}:" +
					"{json?:" + item + "merchantReference}:{json?:" + item + "amount.value}:{json?:" + item + "amount.currency}:" +
					"{json?:" + item + "eventCode}:{json?:" + item + "success}",
				Extended:     true,
				BodyUnsigned: true,
			},
		},
		EventID:   []Part{{{From: FromBody}}}, // platforms, management
		EventType: FromJSONPaths("$.type"),
		Batch: &Batch{
			Paths:     []string{"$.notificationItems"},
			EventID:   []Part{FromJSONPaths(item + "eventCode"), FromJSONPaths(item + "success"), FromJSONPaths(item + "pspReference")},
			EventType: FromJSONPaths(item + "eventCode"),
			Account:   FromJSONPaths(item + "merchantAccountCode"),
		},
		Retry: Retry{
			Automatic: true,
			Window:    30 * day,
			Schedule:  "3 quick tries after 9, 18 and 27 seconds, then 2, 5, 10, 15 and 30 minutes, 1, 2 and 4 hours, then every 8 hours for up to 30 days; a queue for each endpoint",
			On:        anyFailure(),
			Manual:    "resend from the Customer Area; keeps the identity",
		},
		ResponseTimeout: 10 * time.Second,
		TTL:             60 * day,
		BodyHashSafe:    true,
		Traps: []string{
			"The longest retries of all, 30 days: a TTL of a week is too short.",
			"The key is hexadecimal and decoded before use; the signature is base64.",
			"A missing originalReference is signed as an empty field.",
			"A classic notification's signature covers eight of its fields only; everything else in it can be changed.",
			"A pspReference alone names a payment: its events differ in eventCode and success.",
			"Older integrations answer with the body [accepted]; any 2xx will do.",
		},
		Evidence: []string{
			"npm @adyen/api-library 32.1.0, utils/hmacValidator.js",
			"https://docs.adyen.com/development-resources/webhooks/troubleshoot, 2026-05-24",
		},
		Confidence: "high",
		Sample: Sample{
			Header: map[string]string{"Content-Type": "application/json; charset=utf-8", "User-Agent": "Adyen HttpClient 1.0"},
			Body:   sample("adyen.json"),
		},
	}
}

func braintree() Spec {
	scheme := func(content string) Scheme {
		return Scheme{
			Algorithm:    "hmac-sha1",
			Signature:    &Source{From: FromForm, Name: "bt_signature"},
			List:         &List{Separator: "&", Assign: "|", Names: []string{"*"}},
			Content:      content,
			Extended:     true,
			BodyUnsigned: true, // bt_payload is all of the event
			KeyHash:      "sha1",
			KeyName:      "|",
		}
	}
	return Spec{
		ID:      "braintree",
		Title:   "Braintree",
		Docs:    "https://developer.paypal.com/braintree/docs/guides/webhooks/parse",
		Schemes: []Scheme{scheme("{form:bt_payload}"), scheme("{form:bt_payload}\n")},
		EventID: []Part{{{From: FromForm, Name: "bt_payload"}}},
		// The type is in the XML inside the payload's base64, which no source can read.
		Handshakes: []Handshake{{
			Name:      "challenge",
			Method:    "GET",
			EmptyBody: true,
			When:      []Condition{{Source: Source{From: FromQuery, Name: "bt_challenge"}, Pattern: `[0-9a-f]{20,32}`}},
			Answer:    &Answer{Body: "{key_name}|{mac:query:bt_challenge}"},
		}},
		Retry: Retry{
			Automatic: true,
			Window:    day,
			Schedule:  "every hour for up to 3 hours in the sandbox, 24 hours in production",
			On:        anyFailure(),
		},
		ResponseTimeout: 30 * time.Second,
		TTL:             2 * day,
		Traps: []string{
			"The key is the raw SHA-1 of the private key; write the secret as <public key>|<private key>.",
			"bt_signature lists several signatures, each behind its public key.",
			"The payload ends with a line break, which is signed; a payload signed with one more is accepted as Braintree's SDK does.",
			"There is no event ID: the payload itself, which contains the time, names the event.",
		},
		Evidence: []string{
			"npm braintree 3.40.0, webhook_notification_gateway.js, digest.js and webhookTesting",
		},
		Unverified: []string{"the retries", "a retry has the same payload"},
		Confidence: "medium",
		Sample: Sample{
			Header: map[string]string{"Content-Type": "application/x-www-form-urlencoded", "User-Agent": "Braintree-Webhooks"},
			Body:   sample("braintree.form"),
		},
	}
}
