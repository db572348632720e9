package provider_test

import (
	"strings"
	"testing"
	"time"
)

// retryTraps are what is said wrongly, or forgotten, about retries: the status, whether it is retried, and the least TTL.
var retryTraps = []struct {
	name    string
	status  int
	retried bool
	ttl     time.Duration
}{
	{"adyen/thirty days outlast a TTL of a week", 500, true, 30 * day},
	{"aws-sns/a 4xx is final", 400, false, time.Hour},
	{"aws-sns/429 is not", 429, true, time.Hour},
	{"bitbucket/only a 5xx is retried", 429, false, 0},
	{"bitbucket/503 is", 503, true, 0},
	{"chargebee/the intervals add up to 3 d 6 h 38 min", 503, true, 78*time.Hour + 38*time.Minute},
	{"contentful/a 4xx is final", 409, false, 0},
	{"discord/interactions are not retried", 503, false, 0},
	{"github/nothing is retried", 503, false, 3 * day},
	{"gitlab/24 hours is how long a hook is disabled, not retries", 503, false, 0},
	{"hubspot/401 is final", 401, false, day},
	{"jira/409 is retried", 409, true, 30 * time.Minute},
	{"mailgun/406 is final", 406, false, 0},
	{"mollie/the last call comes after 26 hours", 503, true, 26 * time.Hour},
	{"openai/3xx counts as a failure", 302, true, 3 * day},
	{"pagerduty/a 4xx drops the event", 409, false, 2 * day},
	{"pagerduty/429 does not", 429, true, 2 * day},
	{"postmark/403 ends the retries", 403, false, 0},
	{"sanity/only 429 and 5xx are retried", 400, false, 0},
	{"sendgrid/repeats were seen over 29 hours", 503, true, 29 * time.Hour},
	{"sentry/internal integrations are not retried", 503, false, 0},
	{"shopify/48 hours ended in 2024", 503, true, 4 * time.Hour},
	{"slack/Delayed Events last for 24 hours", 503, true, day},
	{"square/72 hours, not 24", 503, true, 72 * time.Hour},
	{"standard-webhooks/five minutes are for replays only", 503, true, 75 * time.Hour},
	{"telegram/an update is kept for 24 hours", 503, true, day},
	{"trello/410 deletes the webhook", 410, false, 0},
	{"twilio/an answer is never retried", 503, false, 0},
	{"woocommerce/nothing is retried", 503, false, 0},
	{"zendesk/500 is not retried", 500, false, 0},
	{"zendesk/503 is", 503, true, 0},
	{"zoom/85 minutes", 503, true, 85 * time.Minute},
}

func TestRetryTraps(t *testing.T) {
	for _, tt := range retryTraps {
		t.Run(tt.name, func(t *testing.T) {
			id, _, _ := strings.Cut(tt.name, "/")
			s := lookup(t, id)
			if s.Retry.OnStatus(tt.status) != tt.retried || s.TTL < tt.ttl {
				t.Errorf("%d retried: %v; TTL %v", tt.status, !tt.retried, s.TTL)
			}
		})
	}
}
