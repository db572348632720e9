package provider

import "errors"

// ErrSignature is wrapped by every error of [Compiled.CheckHeaders] and [Compiled.Verify].
var ErrSignature = errors.New("signature refused")

// ErrMissingID is returned by [Compiled.Identify] when neither the event ID nor a fallback is complete.
var ErrMissingID = errors.New("event id missing")

// The reasons for which a delivery is refused. None of them, nor anything wrapped around them, contains a header's value, a
// secret or an expected signature.
var (
	// ErrSignatureMissing: no signature header.
	ErrSignatureMissing error = refusal("signature header missing")
	// ErrSignatureRepeated: the signature header, or another header that belongs to the signature, on two lines.
	ErrSignatureRepeated error = refusal("header of the signature repeated")
	// ErrSignatureMalformed: empty, too long, without its prefix, of the wrong length, or not in its encoding.
	ErrSignatureMalformed error = refusal("signature malformed")
	// ErrSignatureMismatch: well formed, but not made with any of the keys over this content.
	ErrSignatureMismatch error = refusal("signature mismatch")
	// ErrFamiliesMixed: parts of two header families of one provider in a delivery.
	ErrFamiliesMixed error = refusal("header families mixed")
	// ErrContentMissing: something that is signed beside the body (an ID, a header, the URL, a placeholder) is absent.
	ErrContentMissing error = refusal("signed content incomplete")
	// ErrTimestampMissing: the scheme signs a timestamp and there is none.
	ErrTimestampMissing error = refusal("timestamp missing")
	// ErrTimestampMalformed: not in its format, out of range, or given twice in one header.
	ErrTimestampMalformed error = refusal("timestamp malformed")
	// ErrStale: older than the tolerance.
	ErrStale error = refusal("timestamp too old")
	// ErrFuture: ahead of now by more than the tolerance.
	ErrFuture error = refusal("timestamp in the future")
	// ErrNoKey: none of the keys fits the scheme, or there are none.
	ErrNoKey error = refusal("no key for this scheme")
	// ErrNoScheme: the provider has no signature scheme, so nothing can be verified.
	ErrNoScheme error = refusal("provider has no signature scheme")
)

type refusal string

func (r refusal) Error() string { return string(r) }

func (refusal) Unwrap() error { return ErrSignature }
