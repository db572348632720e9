package provider

// Gap is a kind of delivery of a provider that its entry does not support, and why.
type Gap struct {
	// Provider is the entry's ID.
	Provider string
	// Name says what is not supported.
	Name string
	// Reason says why.
	Reason string
}

// Unsupported lists what the catalogue leaves out. Every provider of it has an entry.
func Unsupported() []Gap {
	return []Gap{
		{"aws-sns", "raw message delivery", "It has no signature."},
		{"docusign", "legacy XML format", "Its identity and its attempt counter are in XML, which is not read: write an own provider that names events by a header, or switch to JSON."},
		{"dropbox", "deduplication", "A notification only says that something has changed, in bytes that repeat: it is verified and passed on."},
		{"github", "X-Hub-Signature (SHA-1) alone", "GitHub sends X-Hub-Signature-256 beside it wherever a secret is set."},
		{"hubspot", "redeliveries of elements without eventId", "Nothing names them: such an element passes undeduplicated."},
		{"jira", "Connect apps", "They authenticate by a JWT that covers method, path and query but not the body; use a webhook with a secret."},
		{"mailgun", "routes that send multipart/form-data", "Messages with attachments have their signature in a multipart body, which is not read."},
		{"mollie", "classic webhooks", "They are not signed, and the body id=tr_… is the same for every change of a payment: they pass with signature off, undeduplicated."},
		{"pagerduty", "webhooks of version 1 and 2", "Their deliveries have another shape and are not signed as those of version 3 are."},
		{"paypal", "verification by posting the event back", "It needs OAuth credentials and a request to PayPal for each delivery."},
		{"plaid", "deduplication", "No ID stays the same over retries, and different events can have the same bytes: events are verified and passed on."},
		{"recurly", "XML webhooks", "They are not signed."},
		{"slack", "trigger IDs of interactive payloads", "They are in JSON inside a form field: the hash of the body names such a delivery."},
		{"telegram", "event types", "The type is the name of a member, which no source reads: listings show none."},
	}
}
