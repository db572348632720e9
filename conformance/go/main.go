// Command go is asked what providers' Go packages say of a delivery: those of providers that have none on npm. It reads the
// delivery, with the secret, as JSON from its input and prints true or false.
package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/PagerDuty/go-pagerduty/webhookv3"
	"github.com/mailgun/mailgun-go/v4"
)

type delivery struct {
	Provider, Secret, Body string
	Headers                map[string]string
}

var verifiers = map[string]func(delivery) (bool, error){
	"mailgun":   verifyMailgun,
	"pagerduty": verifyPagerDuty,
}

func main() {
	var d delivery
	err := json.NewDecoder(os.Stdin).Decode(&d)
	verify := verifiers[d.Provider]
	if err != nil || verify == nil {
		fmt.Fprintf(os.Stderr, "no delivery of a known provider: %q, %v\n", d.Provider, err)
		os.Exit(1)
	}
	ok, err := verify(d)
	fmt.Println(ok && err == nil)
}

func verifyMailgun(d delivery) (bool, error) {
	var payload mailgun.WebhookPayload
	if err := json.Unmarshal([]byte(d.Body), &payload); err != nil {
		return false, err
	}
	mg := mailgun.NewMailgun("example.com", "unused")
	mg.SetWebhookSigningKey(d.Secret)
	return mg.VerifyWebhookSignature(payload.Signature)
}

func verifyPagerDuty(d delivery) (bool, error) {
	r, err := http.NewRequest(http.MethodPost, "https://hooks.example.com/", strings.NewReader(d.Body))
	if err != nil {
		return false, err
	}
	for name, value := range d.Headers {
		r.Header.Set(name, value)
	}
	err = webhookv3.VerifySignature(r, d.Secret)
	return err == nil, err
}
