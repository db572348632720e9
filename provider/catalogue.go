package provider

import (
	"embed"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	hour = time.Hour
	day  = 24 * time.Hour
)

//go:generate go run ./docgen ../docs/providers.md ../conformance/matrix.json

//go:embed samples
var samples embed.FS

// sample returns the realistic event in a file below samples.
func sample(file string) string {
	text, err := samples.ReadFile("samples/" + file)
	if err != nil {
		panic(err) // a test reads every entry
	}
	return string(text)
}

// anyFailure is what most providers retry: every answer that is not 2xx, and none at all.
func anyFailure() []string { return []string{"3xx", "4xx", "5xx", "timeout"} }

// serverFailure is what those retry that take a 4xx for an answer.
func serverFailure() []string { return []string{"429", "5xx", "timeout"} }

// numbered are the names with the numbers from first to last behind a prefix.
func numbered(prefix string, first, last int) []string {
	var names []string
	for n := first; n <= last; n++ {
		names = append(names, prefix+strconv.Itoa(n))
	}
	return names
}

// catalogue holds a function for each provider, so that nobody can change an entry that another one uses.
var catalogue = []func() Spec{
	adyen,
	asana,
	awsSNS,
	bitbucket,
	braintree,
	calendly,
	chargebee,
	circleci,
	clerk,
	coinbaseCommerce,
	contentful,
	customerio,
	discord,
	docusign,
	dropbox,
	gethook,
	github,
	gitlab,
	gocardless,
	hookdeck,
	hubspot,
	intercom,
	jira,
	klaviyo,
	lemonSqueezy,
	line,
	linear,
	mailgun,
	meta,
	mollie,
	mux,
	openai,
	paddle,
	pagerduty,
	paypal,
	plaid,
	postmark,
	razorpay,
	recurly,
	resend,
	sanity,
	sendgrid,
	sentry,
	shopify,
	slack,
	square,
	standardWebhooks,
	stripe,
	svix,
	telegram,
	trello,
	twilio,
	twitch,
	typeform,
	vercel,
	woocommerce,
	workos,
	xero,
	zendesk,
	zoom,
}

// Lookup returns the catalogue's entry with the ID. The caller may change it.
func Lookup(id string) (Spec, bool) {
	for _, entry := range catalogue {
		if s := entry(); s.ID == id {
			return s, true
		}
	}
	return Spec{}, false
}

// All returns the catalogue, sorted by ID. The caller may change it.
func All() []Spec {
	all := make([]Spec, len(catalogue))
	for i, entry := range catalogue {
		all[i] = entry()
	}
	slices.SortFunc(all, func(a, b Spec) int { return strings.Compare(a.ID, b.ID) })
	return all
}
