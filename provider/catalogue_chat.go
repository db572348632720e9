package provider

import "time"

func slack() Spec {
	return Spec{
		ID:    "slack",
		Title: "Slack",
		Docs:  "https://docs.slack.dev/authentication/verifying-requests-from-slack",
		Schemes: []Scheme{{
			Algorithm: "hmac-sha256",
			Header:    "X-Slack-Signature",
			Prefix:    "v0=",
			Content:   "v0:{timestamp}:{body}",
			Timestamp: &Timestamp{From: FromHeader, Name: "X-Slack-Request-Timestamp"},
		}},
		Tolerance: 300 * time.Second,
		EventID:   []Part{FromJSONPaths("$.event_id")},
		Fallbacks: [][]Part{{{{From: FromForm, Name: "trigger_id"}}}},
		EventType: Part{
			{From: FromJSON, Name: "$.event.type"}, {From: FromJSON, Name: "$.type"}, {From: FromForm, Name: "command"},
		},
		Account: Part{{From: FromJSON, Name: "$.team_id"}, {From: FromForm, Name: "team_id"}},
		Handshakes: []Handshake{{
			Name:   "url_verification",
			Signed: true,
			When:   []Condition{{Source: Source{From: FromJSON, Name: "$.type"}, Equals: []string{"url_verification"}}},
			Answer: &Answer{Body: "{json:$.challenge}"},
		}},
		Retry: Retry{
			Automatic: true,
			Window:    10 * time.Minute,
			Attempts:  4,
			Schedule:  "3 retries: almost at once, after 1 minute and after 5 minutes; Delayed Events: hourly for 24 hours",
			On:        anyFailure(),
		},
		ResponseTimeout: 3 * time.Second,
		TTL:             25 * hour,
		BodyHashSafe:    true,
		Replay:          true,
		Traps: []string{
			"A request with X-Slack-Retry-Num is not necessarily a repeat: the first attempt may never have arrived.",
			"After 3 seconds the retry comes while the first attempt is still being processed: a record of finished events alone does not stop it.",
			"Slash commands are forms, signed as sent; their event is named by trigger_id.",
			"Interactive payloads hide their trigger_id in JSON inside a form field: the hash of the body names them.",
			"Commands and interactions use the answer's body, so a duplicate gets the first answer again.",
			"url_verification has no event ID and is never deduplicated.",
			"X-Slack-No-Retry: 1 in an answer that is not 2xx ends the retries.",
			"Bolt for JavaScript refuses only old timestamps; the documentation means both directions.",
		},
		Evidence: []string{
			"npm @slack/bolt 5.1.0, receivers/verify-request.js",
			"https://docs.slack.dev/authentication/verifying-requests-from-slack: the published vector",
			"https://docs.slack.dev/apis/events-api: at once, 1 minute, 5 minutes",
		},
		Unverified: []string{"Delayed Events"},
		Confidence: "high",
		Sample: Sample{
			Header: map[string]string{"Content-Type": "application/json", "User-Agent": "Slackbot 1.0 (+https://api.slack.com/robots)"},
			Body:   sample("slack.json"),
		},
	}
}

func discord() Spec {
	return Spec{
		ID:    "discord",
		Title: "Discord",
		Docs:  "https://docs.discord.com/developers/interactions/overview",
		Schemes: []Scheme{{
			Algorithm:   "ed25519",
			Header:      "X-Signature-Ed25519",
			Content:     "{timestamp}{body}",
			Timestamp:   &Timestamp{From: FromHeader, Name: "X-Signature-Timestamp"},
			KeyEncoding: encodingHex,
		}},
		// Discord names none. It covers the retries of webhook events, should they keep the first timestamp.
		Tolerance: 15 * time.Minute,
		EventID:   []Part{FromJSONPaths("$.id")},           // interactions
		Fallbacks: [][]Part{{Part{{From: FromBody}}}},      // webhook events have none
		EventType: FromJSONPaths("$.event.type", "$.type"), // an interaction's is a number
		Account:   FromJSONPaths("$.application_id"),
		Handshakes: []Handshake{
			{
				// An interaction has a token, a webhook event, whose type is 1 as well, has none.
				Name:   "interaction PING",
				Signed: true,
				When: []Condition{
					{Source: Source{From: FromJSON, Name: "$.type"}, Equals: []string{"1"}},
					{Source: Source{From: FromJSON, Name: "$.token"}},
				},
				Answer: &Answer{Body: `{"type":1}`},
			},
			{
				Name:   "webhook event PING",
				Signed: true,
				When:   []Condition{{Source: Source{From: FromJSON, Name: "$.type"}, Equals: []string{"0"}}},
				Answer: &Answer{Status: 204, Header: map[string]string{"Content-Type": "application/json"}},
			},
		},
		Retry: Retry{
			// Of the two products only the webhook events are retried: what fails must not count on it.
			Schedule: "interactions: none; webhook events: several, exponential, for up to 10 minutes",
		},
		ResponseTimeout: 3 * time.Second,
		TTL:             hour,
		BodyHashSafe:    true,
		Replay:          true,
		Traps: []string{
			"Discord sends requests with wrong signatures on purpose and removes an endpoint that does not answer them with 401.",
			"A PING is no event: one PING is like the next and each must be answered.",
			"type 1 is PING for interactions and an event for webhook events, whose PING is type 0.",
			"An interaction's answer is its body, so a duplicate gets the first answer again.",
			"Webhook events have no ID: the hash of the body stands in for it.",
			"Interactions are not retried, and their token is worthless after 3 seconds without an answer.",
		},
		Evidence: []string{
			"npm discord-interactions 4.4.0",
			"discord/discord-api-docs, developers/events/webhook-events.mdx at c98d64b",
		},
		Unverified: []string{
			"a retried webhook event has the same bytes, and whether its timestamp is made anew",
			"the tolerance, which Discord does not publish",
		},
		Confidence: "high",
		Sample: Sample{
			Header: map[string]string{"Content-Type": "application/json", "User-Agent": "Discord-Interactions/1.0 (+https://discord.com)"},
			Body:   sample("discord.json"),
		},
	}
}

func telegram() Spec {
	return Spec{
		ID:      "telegram",
		Title:   "Telegram Bot API",
		Docs:    "https://core.telegram.org/bots/api#setwebhook",
		Schemes: []Scheme{{Algorithm: "token", Header: "X-Telegram-Bot-Api-Secret-Token"}},
		EventID: []Part{FromJSONPaths("$.update_id")},
		// The type is the name of the member beside update_id, which no source can read.
		Retry: Retry{
			Automatic: true,
			Window:    day,
			Schedule:  "until 2xx, the delay doubling up to a minute or two, or Retry-After; an update is dropped 24 hours after it was made, some kinds of query after 150 seconds",
			On:        anyFailure(),
		},
		TTL:          2 * day,
		BodyHashSafe: true,
		Replay:       true,
		Traps: []string{
			"update_id counts per bot: two bots on one path hide each other's updates, so each bot needs a path or a scope of its own.",
			"A JSON answer is carried out as a call of the Bot API, so a duplicate gets the first answer again.",
			"The body is not signed: the token alone authenticates, to everybody who has seen it once.",
		},
		Evidence:   []string{"tdlib/telegram-bot-api, WebhookActor.cpp, WebhookActor.h and Client.cpp at 01a3679"},
		Confidence: "high",
		Sample: Sample{
			Header: map[string]string{"Content-Type": "application/json"},
			Body:   sample("telegram.json"),
		},
	}
}
