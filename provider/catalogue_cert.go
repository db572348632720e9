package provider

import "time"

func paypal() Spec {
	return Spec{
		ID:    "paypal",
		Title: "PayPal",
		Docs:  "https://developer.paypal.com/api/rest/webhooks/rest/",
		Schemes: []Scheme{{
			Algorithm: "rsa-sha256",
			Header:    "PayPal-Transmission-Sig",
			Encoding:  encodingBase64,
			Content:   "{header:PayPal-Transmission-Id}|{timestamp}|{secret}|{crc32}",
			Extended:  true,
			When:      []Condition{{Source: Source{From: FromHeader, Name: "PayPal-Auth-Algo"}, Equals: []string{"SHA256withRSA"}}},
			Timestamp: &Timestamp{From: FromHeader, Name: "PayPal-Transmission-Time", Format: FormatRFC3339},
			Certificate: &Certificate{
				URL:     Source{From: FromHeader, Name: "PayPal-Cert-Url"},
				Pattern: `https://([a-z0-9-]+\.)+paypal\.com/[A-Za-z0-9._/-]+`,
				Names:   []string{`([a-z0-9-]+\.)*paypal\.com`},
			},
		}},
		// PayPal names none. It covers the retries, should they keep the first time; the IDs are kept for longer.
		Tolerance: 3*day + hour,
		EventID:   []Part{FromJSONPaths("$.id")},
		EventType: FromJSONPaths("$.event_type"),
		Retry: Retry{
			Automatic: true,
			Window:    3 * day,
			Attempts:  26,
			Schedule:  "up to 25 times over 3 days",
			On:        anyFailure(),
			Manual:    "resend from the dashboard or the API; keeps the event ID",
		},
		TTL:          6 * day,
		BodyHashSafe: true,
		Traps: []string{
			"The secret is the ID of the webhook, which is part of what is signed; the key is in a certificate that the delivery names, from a host of paypal.com only.",
			"Events of the simulator are signed with the webhook ID WEBHOOK_ID, so they are refused unless that is configured.",
			"The body counts by its CRC-32 only, so its integrity rests on 32 bits.",
			"PAYPAL-TRANSMISSION-ID names the transmission, of which it is not documented that it stays the same.",
			"PayPal's other way of verification, posting the event back, needs OAuth and is not used.",
		},
		Evidence:   []string{"https://developer.paypal.com/api/rest/webhooks/rest: scheme, 25 times over 3 days, WEBHOOK_ID"},
		Unverified: []string{"the response timeout", "the tolerance, which PayPal does not publish"},
		Confidence: "high",
		Sample: Sample{
			Header: map[string]string{
				"Content-Type":           "application/json",
				"User-Agent":             "PayPal/AUHD-214.0-58843494",
				"PayPal-Auth-Algo":       "SHA256withRSA",
				"PayPal-Auth-Version":    "v2",
				"PayPal-Cert-Url":        "https://api.paypal.com/v1/notifications/certs/CERT-360caa42-fca2a594-1d93a270",
				"PayPal-Transmission-Id": "69cd13f0-d67a-11e5-baa3-778b53f4ae55",
			},
			Body: sample("paypal.json"),
		},
	}
}

func awsSNS() Spec {
	const notification = "Message,MessageId,Subject?,Timestamp,TopicArn,Type"
	const confirmation = "Message,MessageId,SubscribeURL,Timestamp,Token,TopicArn,Type"
	is := func(path string, values ...string) Condition {
		return Condition{Source: Source{From: FromJSON, Name: path}, Equals: values}
	}
	scheme := func(algorithm, version, members string, types ...string) Scheme {
		return Scheme{
			Algorithm:    algorithm,
			Signature:    &Source{From: FromJSON, Name: "$.Signature"},
			When:         []Condition{is("$.SignatureVersion", version), is("$.Type", types...)},
			Encoding:     encodingBase64,
			Content:      "{json_lines:" + members + "}",
			Extended:     true,
			BodyUnsigned: true, // the members that matter are signed
			Timestamp:    &Timestamp{From: FromJSON, Name: "$.Timestamp", Format: FormatRFC3339},
			Certificate: &Certificate{
				URL:     Source{From: FromJSON, Name: "$.SigningCertURL"},
				Pattern: `https://sns\.[a-z0-9-]{3,}\.amazonaws\.com(\.cn)?/[A-Za-z0-9._-]+\.pem`,
				Names:   []string{`sns(\.[a-z0-9-]+)?\.amazonaws\.com(\.cn)?`},
			},
			Pin:            &Source{From: FromJSON, Name: "$.TopicArn"},
			OnlyHandshakes: members == confirmation,
		}
	}
	confirmations := []string{"SubscriptionConfirmation", "UnsubscribeConfirmation"}
	handshake := func(kind string) Handshake {
		return Handshake{Name: kind, Signed: true, When: []Condition{is("$.Type", kind)}}
	}
	return Spec{
		ID:    "aws-sns",
		Title: "AWS SNS",
		Docs:  "https://docs.aws.amazon.com/sns/latest/dg/sns-verify-signature-of-message.html",
		Schemes: []Scheme{
			scheme("rsa-sha256", "2", notification, "Notification"),
			scheme("rsa-sha1", "1", notification, "Notification"),
			scheme("rsa-sha256", "2", confirmation, confirmations...),
			scheme("rsa-sha1", "1", confirmation, confirmations...),
		},
		// The timestamp is the message's, an hour old at the last retry.
		Tolerance:  65 * time.Minute,
		EventID:    []Part{{{From: FromJSON, Name: "$.MessageId"}, {From: FromHeader, Name: "X-Amz-Sns-Message-Id"}}},
		EventType:  Part{{From: FromJSON, Name: "$.Type"}, {From: FromHeader, Name: "X-Amz-Sns-Message-Type"}},
		Account:    Part{{From: FromJSON, Name: "$.TopicArn"}, {From: FromHeader, Name: "X-Amz-Sns-Topic-Arn"}},
		Handshakes: []Handshake{handshake(confirmations[0]), handshake(confirmations[1])},
		Retry: Retry{
			Automatic: true,
			Window:    hour,
			Attempts:  4,
			Schedule:  "3 retries, 20 s apart; a policy of one's own may try for up to 3,600 s in all",
			On:        serverFailure(),
		},
		ResponseTimeout: 15 * time.Second,
		TTL:             day,
		BodyHashSafe:    true,
		Traps: []string{
			"Anybody with an account can have SNS sign a message: the secret is the ARN of the topic that may deliver.",
			"Raw message delivery has no signature, so it is refused.",
			"The body is JSON although its Content-Type is text/plain.",
			"A confirmation is signed over other members than a notification; the package sns-validator takes the wrong ones for UnsubscribeConfirmation.",
			"50 attempts over 6 hours, and 23 days, are for other protocols than HTTP.",
			"A 4xx other than 429 is final.",
			"SubscriptionConfirmation must be answered by a GET of its SubscribeURL, which is the application's work.",
		},
		Evidence: []string{
			"npm sns-validator 0.3.5",
			"docs.aws.amazon.com: sns-message-delivery-retries, SendMessageToHttp.retry",
		},
		Confidence: "high",
		Sample: Sample{
			Header: map[string]string{
				"Content-Type":           "text/plain; charset=UTF-8",
				"User-Agent":             "Amazon Simple Notification Service Agent",
				"X-Amz-Sns-Message-Id":   "{event_id}",
				"X-Amz-Sns-Message-Type": "Notification",
				"X-Amz-Sns-Topic-Arn":    "arn:aws:sns:eu-central-1:123456789012:orders",
			},
			Body: sample("aws-sns.json"),
		},
	}
}

func plaid() Spec {
	return Spec{
		ID:    "plaid",
		Title: "Plaid",
		Docs:  "https://plaid.com/docs/api/webhooks/webhook-verification/",
		Schemes: []Scheme{{
			Algorithm: "jwt-es256",
			Header:    "Plaid-Verification",
			BodyHash:  &Source{From: FromClaim, Name: "request_body_sha256"},
			Timestamp: &Timestamp{From: FromClaim, Name: "iat"},
		}},
		Tolerance: 300 * time.Second,
		// No identity: different events can have the same bytes, SYNC_UPDATES_AVAILABLE of one item say.
		EventType: FromJSONPaths("$.webhook_code"),
		Account:   FromJSONPaths("$.item_id"),
		Retry: Retry{
			Automatic: true,
			Window:    day,
			Schedule:  "for up to 24 hours",
			On:        anyFailure(),
		},
		ResponseTimeout: 10 * time.Second,
		TTL:             300 * time.Second,
		Traps: []string{
			"Different events can have the same bytes, so nothing is deduplicated unless asked for; then the TTL is short on purpose.",
			"The header is a JWT; only ES256 is accepted, whatever it says itself.",
			"The JWT covers the hash of the body, white space included.",
			"The keys change: each JWT names its own.",
		},
		Evidence: []string{
			"https://plaid.com/docs/api/webhooks/webhook-verification",
			"elixir_plaid 1.1.2, webhooks.ex",
		},
		Unverified: []string{"24 hours of retries and 10 s for an answer", "whether a retry has the same bytes"},
		Confidence: "medium",
		Sample: Sample{
			Header: map[string]string{"Content-Type": "application/json"},
			Body:   sample("plaid.json"),
		},
	}
}
