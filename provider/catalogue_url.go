package provider

import "time"

func square() Spec {
	return Spec{
		ID:    "square",
		Title: "Square",
		Docs:  "https://developer.squareup.com/docs/webhooks/step3validate",
		Schemes: []Scheme{{
			Algorithm: "hmac-sha256",
			Header:    "X-Square-HmacSha256-Signature",
			Encoding:  encodingBase64,
			Content:   "{url}{body}",
		}},
		EventID:   []Part{FromJSONPaths("$.event_id")},
		EventType: FromJSONPaths("$.type"),
		Account:   FromJSONPaths("$.merchant_id"),
		Retry: Retry{
			Automatic: true,
			Window:    3 * day,
			Schedule:  "for up to 72 hours, then discarded",
			On:        anyFailure(),
		},
		ResponseTimeout: 10 * time.Second,
		TTL:             6 * day,
		BodyHashSafe:    true,
		Traps: []string{
			"The notification URL that is registered at Square is signed, not the one behind a proxy: set public_url.",
			"18 attempts in 24 hours is what older pages say; it is 72 hours.",
			"A subscription without any 2xx for 3 weeks is disabled.",
		},
		Evidence: []string{
			"npm square 46.0.0, wrapper/WebhooksHelper.js",
			"https://developer.squareup.com/docs/webhooks/troubleshooting: 72 hours, 10 s",
			"https://developer.squareup.com/docs/webhooks/step4manage: event_id",
		},
		Unverified: []string{
			"the headers square-retry-number and square-retry-reason",
			"the headers square-initial-delivery-timestamp and square-environment",
		},
		Confidence: "high",
		Sample: Sample{
			Header: map[string]string{"Content-Type": "application/json", "User-Agent": "Square Connect v2", "Square-Environment": "Production"},
			Body:   sample("square.json"),
		},
	}
}

func trello() Spec {
	return Spec{
		ID:    "trello",
		Title: "Trello",
		Docs:  "https://developer.atlassian.com/cloud/trello/guides/rest-api/webhooks/",
		Schemes: []Scheme{{
			Algorithm: "hmac-sha1",
			Header:    "X-Trello-Webhook",
			Encoding:  encodingBase64,
			Content:   "{body}{url}",
		}},
		EventID:    []Part{FromJSONPaths("$.action.id")},
		EventType:  FromJSONPaths("$.action.type"),
		Account:    FromJSONPaths("$.model.id"),
		Handshakes: []Handshake{{Name: "creation", Method: "HEAD", EmptyBody: true, Answer: &Answer{Status: 200}}},
		Retry: Retry{
			Automatic: true,
			Window:    210 * time.Second,
			Attempts:  4,
			Schedule:  "3 retries: after 30, 60 and 120 seconds",
			On:        anyFailure(),
			Except:    []string{"410"},
		},
		TTL:          day,
		BodyHashSafe: true,
		Traps: []string{
			"The callback URL is signed behind the body, as it was registered: behind another proxy set public_url.",
			"On creation a HEAD request must get 200.",
			"The answer 410 deletes the webhook.",
		},
		Evidence:   []string{"general knowledge only; no source was read"},
		Unverified: []string{"the retries", "every other fact of this entry"},
		Confidence: "low",
		Sample: Sample{
			Header: map[string]string{"Content-Type": "application/json"},
			Body:   sample("trello.json"),
		},
	}
}

func contentful() Spec {
	const signedHeaders = "X-Contentful-Signed-Headers"
	return Spec{
		ID:    "contentful",
		Title: "Contentful",
		Docs:  "https://www.contentful.com/developers/docs/webhooks/request-verification/",
		Schemes: []Scheme{{
			Algorithm: "hmac-sha256",
			Header:    "X-Contentful-Signature",
			Content:   "{method}\n{path_encoded}\n{signed_headers:" + signedHeaders + "}\n{body}",
			Extended:  true,
			Timestamp: &Timestamp{From: FromHeader, Name: "X-Contentful-Timestamp", Format: FormatUnixMS},
		}},
		Tolerance: 30 * time.Second,
		EventID:   []Part{FromHeaders("X-Contentful-Idempotency-Key")},
		EventType: FromHeaders("X-Contentful-Topic"),
		Account:   FromJSONPaths("$.sys.space.sys.id"),
		Retry: Retry{
			Automatic: true,
			Window:    2 * time.Minute,
			Attempts:  3,
			Schedule:  "2 more attempts, about 30 s apart; timeouts are not retried",
			On:        []string{"429", "5xx"},
		},
		ResponseTimeout: 30 * time.Second,
		TTL:             day,
		Traps: []string{
			"Method, path, query and a list of headers are signed with the body: behind another proxy set public_url.",
			"The timestamp is in milliseconds, and the toolkit accepts it for 30 seconds only.",
			"A timeout is not retried: an application that takes longer than 30 seconds fails once and for all, so it is not given up when Contentful hangs up.",
		},
		Evidence: []string{
			"npm @contentful/node-apps-toolkit 3.16.1, lib/requests",
			"public receivers: X-Contentful-Idempotency-Key is the header that is documented for deduplication",
		},
		Unverified: []string{"the retries", "the idempotency key on a redelivery by hand"},
		Confidence: "medium",
		Sample: Sample{
			Header: map[string]string{
				"Content-Type":                 "application/vnd.contentful.management.v1+json",
				"X-Contentful-Idempotency-Key": "{event_id}",
				"X-Contentful-Topic":           "ContentManagement.Entry.publish",
				signedHeaders:                  "x-contentful-idempotency-key,x-contentful-signed-headers,x-contentful-timestamp,x-contentful-topic",
			},
			Body: sample("contentful.json"),
		},
	}
}

func hubspot() Spec {
	const version = "X-HubSpot-Signature-Version"
	legacy := func(v, content string) Scheme {
		return Scheme{
			Algorithm: "sha256", Header: "X-HubSpot-Signature", Content: content, Extended: true,
			When: []Condition{{Source: Source{From: FromHeader, Name: version}, Equals: []string{v}}},
		}
	}
	return Spec{
		ID:    "hubspot",
		Title: "HubSpot",
		Docs:  "https://developers.hubspot.com/docs/apps/developer-platform/build-apps/authentication/request-validation",
		Schemes: []Scheme{
			{
				Algorithm: "hmac-sha256",
				Header:    "X-HubSpot-Signature-v3",
				Encoding:  encodingBase64,
				Content:   "{method}{url_decoded::/?@!$'()*,;}{body}{timestamp}",
				Extended:  true,
				Timestamp: &Timestamp{From: FromHeader, Name: "X-HubSpot-Request-Timestamp", Format: FormatUnixMS},
			},
			legacy("v2", "{secret}{method}{url}{body}"),
			legacy("v1", "{secret}{body}"),
		},
		Tolerance: 300 * time.Second,
		Batch: &Batch{
			Paths: []string{"$"},
			EventID: []Part{
				FromJSONPaths("$.portalId"), FromJSONPaths("$.subscriptionId"), FromJSONPaths("$.objectId"),
				FromJSONPaths("$.occurredAt"), FromJSONPaths("$.eventId"),
			},
			Fallbacks: [][]Part{{FromJSONPaths("$.occurredAt"), FromJSONPaths("$.eventId")}},
			EventType: FromJSONPaths("$.subscriptionType"),
			Account:   FromJSONPaths("$.portalId"),
		},
		Retry: Retry{
			Automatic: true,
			Window:    day,
			Attempts:  11,
			Schedule:  "up to 10 retries over the next 24 hours",
			On:        anyFailure(),
			Except:    []string{"400", "401", "403", "404", "405"},
		},
		ResponseTimeout: 5 * time.Second,
		TTL:             2 * day,
		Traps: []string{
			"attemptNumber stands in the body, so a hash of the body changes with each attempt.",
			"eventId is not guaranteed to be unique: portal, subscription, object and time belong to the identity.",
			"A delivery is an array of up to 100 events, which a retry may group anew.",
			"Version 3 signs the public URL with some of its percent-encodings decoded: behind another proxy set public_url.",
			"The timestamp is in milliseconds; HubSpot's SDK refuses only old ones.",
			"Versions 1 and 2 are plain hashes that begin with the secret, without a timestamp; they count only where version 3 is absent.",
		},
		Evidence: []string{
			"npm @hubspot/api-client 13.5.0, utils/signature.js",
			"https://integrate.hubspot.com/t/3953",
		},
		Unverified: []string{
			"24 hours of retries; older pages say 2, 4, 8 minutes and so on",
			"which 4xx are not retried",
			"that eventId is not guaranteed to be unique",
		},
		Confidence: "medium",
		Sample: Sample{
			Header: map[string]string{"Content-Type": "application/json", "User-Agent": "HubSpot Connect 2.0 (http://dev.hubspot.com/)"},
			Body:   sample("hubspot.json"),
		},
	}
}
