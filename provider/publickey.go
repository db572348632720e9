package provider

// CertificateSource gives the certificates that deliveries name. The package fetches nothing itself: an implementation fetches
// once, remembers, and bounds both.
type CertificateSource interface {
	// Certificates returns the certificate at the URL, which has been checked against the Spec's pattern.
	Certificates(url string) (*Certificates, error)
}

// KeySource gives the JWKs that deliveries name.
type KeySource interface {
	// JWK returns the public key with the ID, as JSON.
	JWK(kid string) ([]byte, error)
}

// Certificates is a chain of certificates.
type Certificates struct{}
