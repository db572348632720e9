package provider

import "time"

// standardSchemes are the symmetric and the asymmetric scheme of Standard Webhooks, with headers of the given prefix.
func standardSchemes(prefix string) []Scheme {
	scheme := Scheme{
		Algorithm:   "hmac-sha256",
		Header:      prefix + "-Signature",
		List:        &List{Separator: " ", Assign: ",", Names: []string{"v1"}},
		Encoding:    encodingBase64,
		Content:     "{id}.{timestamp}.{body}",
		IDHeader:    prefix + "-Id",
		Timestamp:   &Timestamp{From: FromHeader, Name: prefix + "-Timestamp"},
		KeyEncoding: encodingBase64,
		KeyPrefix:   "whsec_",
	}
	asymmetric := scheme
	asymmetric.Algorithm = "ed25519"
	asymmetric.List = &List{Separator: " ", Assign: ",", Names: []string{"v1a"}}
	asymmetric.KeyPrefix, asymmetric.KeyPrefixRequired, asymmetric.PrivateKeyPrefix = "whpk_", true, "whsk_"
	return []Scheme{scheme, asymmetric}
}

func svix() Spec {
	return Spec{
		ID:    "svix",
		Title: "Svix",
		Docs:  "https://docs.svix.com/receiving/verifying-payloads/how-manual",
		// Svix's own headers, else the unbranded ones.
		Schemes:   append(standardSchemes("Svix"), standardSchemes("Webhook")...),
		Tolerance: 300 * time.Second,
		// The ID of the family that is signed: an ID of the other family would be anybody's. The headers themselves count
		// only where the signature is switched off or replaced by one that covers no ID.
		EventID:   []Part{append(Part{{From: FromSignedID}}, FromHeaders("Svix-Id", "Webhook-Id")...)},
		EventType: FromJSONPaths("$.type", "$.event_type"),
		Retry: Retry{
			Automatic:    true,
			Window:       99305 * time.Second,
			Attempts:     8,
			Schedule:     "at once, then after 5 s, 5 min, 30 min, 2 h, 5 h, 10 h and 10 h; the last 27 h 35 min 5 s after the first",
			On:           anyFailure(),
			Manual:       "resend or recover from the portal; keeps the ID",
			ManualWindow: 90 * day,
		},
		ResponseTimeout: 15 * time.Second,
		TTL:             3 * day,
		Traps: []string{
			"The headers begin with svix- or with webhook-; a delivery that has parts of both families is refused.",
			"Replays from the portal are possible for 90 days: a ttl of 91d treats them as duplicates too.",
			"The five minutes that Standard Webhooks suggests for remembering IDs protect against replays only.",
			"A response header webhook-delivery: abort-message ends the retries of a message.",
		},
		Evidence: []string{
			"npm svix 1.99.1",
			"svix-webhooks 1.44.0, go/webhook.go",
			"docs.svix.com/retries",
			"docs.svix.com/retention",
		},
		Confidence: "high",
		Sample: Sample{
			Header: map[string]string{
				"Content-Type": "application/json",
				"User-Agent":   "Svix-Webhooks/1.62.0",
				"Svix-Id":      "{event_id}",
			},
			Body: sample("svix.json"),
		},
	}
}

func standardWebhooks() Spec {
	const window = 272105 * time.Second
	return Spec{
		ID:        "standard-webhooks",
		Title:     "Standard Webhooks",
		Docs:      "https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md",
		Schemes:   standardSchemes("Webhook"),
		Tolerance: 300 * time.Second,
		EventID:   []Part{append(Part{{From: FromSignedID}}, FromHeaders("Webhook-Id")...)},
		EventType: FromJSONPaths("$.type"),
		Retry: Retry{
			Automatic: true,
			Window:    window,
			Attempts:  10,
			Schedule:  "recommended: at once, then after 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h and 24 h; the last 75 h 35 min 5 s after the first",
			On:        anyFailure(),
			Except:    []string{"410"},
			Manual:    "up to the sender",
		},
		ResponseTimeout: 15 * time.Second,
		TTL:             2 * window,
		Traps: []string{
			"Timeout and retries are the specification's recommendation; each sender has its own.",
			"The timestamp is made anew for each attempt, so a retry is never stale.",
			"A public key (whpk_) goes with signatures v1a, a secret (whsec_, base64) with v1.",
			"The five minutes that the specification suggests for remembering IDs protect against replays only.",
			"The answer 410 disables the endpoint.",
		},
		Evidence: []string{
			"standard-webhooks/standard-webhooks, spec/standard-webhooks.md, version 1.0.0",
			"npm standardwebhooks 1.1.1",
		},
		Unverified: []string{
			"vendors' SDKs for signatures v1a: no JavaScript one verifies them",
		},
		Confidence: "high",
		Sample: Sample{
			Header: map[string]string{
				"Content-Type": "application/json",
				"Webhook-Id":   "{event_id}",
			},
			Body: sample("standard-webhooks.json"),
		},
	}
}
