package provider

import "errors"

// ErrSignature is wrapped by every error of [Compiled.CheckHeaders] and [Compiled.Verify].
var ErrSignature = errors.New("signature refused")

// ErrMissingID is returned by [Compiled.Identify] when neither the event ID nor a fallback is complete.
var ErrMissingID = errors.New("event id missing")

// The errors of [Compiled.Elements] and [Compiled.Filter].
var (
	// ErrNotBatch: the provider sends no batches, the body is not JSON, or there is no array at the batch's path.
	ErrNotBatch = errors.New("not a batch")
	// ErrBatchTooLarge: more than [MaxElements] items in a batch's arrays.
	ErrBatchTooLarge = errors.New("batch has too many elements")
	// ErrBatchEncoded: a body with a Content-Encoding can't be filtered.
	ErrBatchEncoded = errors.New("batch is compressed")
)

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
	// ErrContentMalformed: something that is signed beside the body can't be read: a form with a broken escape or too many
	// fields, a list of headers that lacks the timestamp's.
	ErrContentMalformed error = refusal("signed content malformed")
	// ErrBodyHash: the body is not the one whose hash is signed, or there is a body where there must be none.
	ErrBodyHash error = refusal("body is not the signed one")
	// ErrSchemeUnknown: there is a signature, but the delivery meets the conditions of none of the schemes.
	ErrSchemeUnknown error = refusal("signed in an unknown way")
	// ErrForeign: signed by the provider, but for somebody else.
	ErrForeign error = refusal("signed for somebody else")
	// ErrCertificate: the certificate is at a foreign URL, unavailable, expired, not trusted, or not the provider's.
	ErrCertificate error = refusal("certificate refused")
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
