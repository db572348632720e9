package provider_test

import (
	"testing"
	"time"

	"github.com/webhook-dedup/caddy-webhook-dedup/internal/testsecrets"
	"github.com/webhook-dedup/caddy-webhook-dedup/provider"
)

func pairOf(id string) testsecrets.Pair { return testsecrets.Of(id) }

func wrongPairOf(id string) testsecrets.Pair { return testsecrets.WrongOf(id) }

// secretOf is the secret that verifies.
func secretOf(id string) string { return pairOf(id).Verify }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// publicURL is what the tests' endpoints are registered as.
const publicURL = "https://hooks.example.com/hooks/1"

// example is the provider's example event as the module hands it over.
func example(c *provider.Compiled, id string, at time.Time) provider.Delivery {
	d := c.Spec().Example(id, at)
	d.URL = publicURL
	d.Certificates = pairOf(c.Spec().ID).Certificates
	return d
}

// signed returns an example of the provider, signed.
func signed(t testing.TB, c *provider.Compiled, id string) provider.Delivery {
	t.Helper()
	d := example(c, id, now)
	sign(t, c, &d, now)
	return d
}

func sign(t testing.TB, c *provider.Compiled, d *provider.Delivery, at time.Time) {
	t.Helper()
	if err := c.Sign(d, pairOf(c.Spec().ID).Sign, at); err != nil {
		t.Fatal(err)
	}
}

// verify checks d with the right secret and the provider's tolerance.
func verify(t testing.TB, c *provider.Compiled, d *provider.Delivery, at time.Time) error {
	t.Helper()
	tolerance, _ := c.DefaultTolerance()
	return c.Verify(d, []provider.Key{key(t, c, secretOf(c.Spec().ID))}, at, tolerance)
}

// identity is what names the event, or the first of a batch; empty if nothing does.
func identity(t testing.TB, c *provider.Compiled, d *provider.Delivery) []string {
	t.Helper()
	if elements, err := c.Elements(d); err == nil {
		if len(elements) == 0 {
			t.Fatal("a batch without elements")
		}
		return elements[0].Parts
	}
	id, _ := c.Identify(d)
	return id.Parts
}
