package provider

import "time"

func github() Spec {
	return Spec{
		ID:    "github",
		Title: "GitHub",
		Docs:  "https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries",
		// SHA-256 only: a delivery with nothing but the legacy X-Hub-Signature (SHA-1) counts as unsigned.
		Schemes: []Scheme{{
			Algorithm: "hmac-sha256",
			Header:    "X-Hub-Signature-256",
			Prefix:    "sha256=",
		}},
		EventID:   []Part{FromHeaders("X-GitHub-Hook-ID"), FromHeaders("X-GitHub-Delivery")},
		Fallbacks: [][]Part{{FromHeaders("X-GitHub-Delivery")}},
		EventType: FromHeaders("X-GitHub-Event"),
		Account:   FromHeaders("X-GitHub-Hook-Installation-Target-ID"),
		Retry: Retry{
			Automatic:    false,
			Schedule:     "none: failed deliveries are not redelivered by themselves",
			Manual:       "redelivery from the settings or the REST API; keeps X-GitHub-Delivery",
			ManualWindow: 3 * day,
		},
		ResponseTimeout: 10 * time.Second,
		TTL:             4 * day,
		MaxBody:         25 << 20,
		BodyHashSafe:    true,
		Traps: []string{
			"X-GitHub-Delivery is shared by all webhooks that subscribe to the event (repository, organization, app): it needs X-GitHub-Hook-ID beside it.",
			"A redelivery asked for by hand can't be told from a duplicate: to have an event processed again, forget it first.",
			"GitHub does not retry: a delivery that is refused is lost unless somebody redelivers it.",
			"The headers that name the event are not signed, and there is no timestamp.",
			"GitHub Enterprise Server waits 30 s for an answer, github.com 10 s.",
			"Webhooks of content type form sign the form as sent; the JSON is in its field payload.",
		},
		Evidence: []string{
			"npm @octokit/webhooks-methods 6.0.0",
			"docs.github.com, handling failed webhook deliveries: no automatic redelivery; by hand for 3 days",
			"github/docs pull request 29028: a redelivery keeps X-GitHub-Delivery",
			"GitHub OpenAPI, hook-delivery: the GUID is shared by all webhooks that subscribe to the event",
			"docs.github.com, webhook events and payloads: payloads are capped at 25 MB",
		},
		Unverified: []string{
			"25 MB: whether a megabyte is 10^6 or 2^20 bytes there; taken as the larger",
		},
		Confidence: "high",
		Sample: Sample{
			Header: map[string]string{
				"Content-Type":                           "application/json",
				"User-Agent":                             "GitHub-Hookshot/044aadd",
				"X-GitHub-Delivery":                      "{event_id}",
				"X-GitHub-Event":                         "push",
				"X-GitHub-Hook-ID":                       "292430182",
				"X-GitHub-Hook-Installation-Target-ID":   "79929171",
				"X-GitHub-Hook-Installation-Target-Type": "repository",
			},
			Body: sample("github.json"),
		},
	}
}
