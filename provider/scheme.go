package provider

// Scheme is how deliveries are signed. It is also the JSON form of an own provider's signature:
//
//	{
//	  "algorithm": "hmac-sha256",
//	  "header": "X-Acme-Signature",
//	  "prefix": "sha256=",
//	  "encoding": "hex",
//	  "content": "{timestamp}.{body}",
//	  "timestamp": {"from": "header", "name": "X-Acme-Timestamp"}
//	}
type Scheme struct {
	// Algorithm is hmac-sha1, hmac-sha256, hmac-sha512, ed25519, ecdsa-p256-sha256 (ASN.1 signature), token: the header is the
	// secret itself, or basic: the header is an Authorization whose user:password is the secret.
	Algorithm string `json:"algorithm"`
	// Header is the name of the header that holds the signature.
	Header string `json:"header"`
	// Prefix is what stands before the signature in a header that holds only one, "sha256=" say. Default none.
	Prefix string `json:"prefix,omitempty"`
	// List describes a header that holds several named elements instead.
	List *List `json:"list,omitempty"`
	// Encoding of the signature: hex (the default, in either case), base64, or base64url, padded or not.
	Encoding string `json:"encoding,omitempty"`
	// Content is what is signed, default {body}. It may contain {body}, {timestamp} (its text as sent), {id} (the value of
	// IDHeader, else the event ID's first source), {url}, {header:<name>}, and {http.request.*} placeholders. A brace
	// that is none of these is an error, and so is content without {body}. See Extended for more.
	Content string `json:"content,omitempty"`
	// Timestamp says where the signed time is. Without it deliveries of any age are accepted.
	Timestamp *Timestamp `json:"timestamp,omitempty"`
	// IDHeader is the header that {id} stands for, where the scheme signs an ID.
	IDHeader string `json:"id_header,omitempty"`
	// KeyEncoding is how a secret writes the key: raw (the default: its bytes are the key), base64 or hex. A public key of
	// ecdsa-p256-sha256 is PEM, or its DER (SPKI) in base64, whatever this says.
	KeyEncoding string `json:"key_encoding,omitempty"`
	// KeyPrefix is removed from a secret that starts with it, before decoding.
	KeyPrefix string `json:"key_prefix,omitempty"`
	// KeyPrefixRequired says that only secrets with KeyPrefix are for this scheme.
	KeyPrefixRequired bool `json:"key_prefix_required,omitempty"`
	// PrivateKeyPrefix is the prefix of an ed25519 private key, which can sign samples but is refused for verification.
	PrivateKeyPrefix string `json:"private_key_prefix,omitempty"`

	// The fields below are for the catalogue. Algorithm may also be sha256 (a plain hash, of content with {secret}), rsa-sha1 and
	// rsa-sha256 (PKCS #1 v1.5, with Certificate), and jwt-es256 (the header is a JWT, see BodyHash).

	// When are conditions on deliveries for this scheme, all of which must hold.
	When []Condition `json:"-"`
	// OnlyHandshakes: deliveries of events are never verified by this scheme, signed handshakes are.
	OnlyHandshakes bool `json:"-"`
	// Signature is where the signature is, if not in Header: json, form or query.
	Signature *Source `json:"-"`
	// Also are further headers that may each hold a signature, made with another key. Only for HMACs without a List.
	Also []string `json:"-"`
	// Each is the path of the elements of a batch that are signed one by one: Signature, and {json:<path>} in Content, start at the
	// element. All of them must verify, and there must be one.
	Each string `json:"-"`
	// Extended allows more in Content:
	//   - {method}: the HTTP method; {path}: the path and query of {url}; {path_encoded}: the path as JavaScript's encodeURI
	//     writes it, the query as encodeURI does after a whole escape.
	//   - {url_decoded:<characters>}: {url}, these characters' percent-encodings decoded.
	//   - {json:<path>}, {form:<field>}, {query:<name>}: the value; with a ? before the colon a missing one is empty.
	//   - {json_lines:a,b?,c}: the member's name and a line feed, its value and a line feed, for each; one with ? may be missing.
	//   - {sorted_form}: of a form the names in order of their bytes, each followed by its value. A name given several times is
	//     repeated with each of its distinct values in order.
	//   - {signed_headers:<name>}: the headers that this one lists, separated by commas: in order of their names in lower
	//     case name:value, joined by semicolons. The list must name itself, and the timestamp's header.
	//   - {crc32}: the body's CRC-32 (IEEE) as a decimal number; it stands for {body}.
	//   - {secret}: the secret's text. For schemes without a MAC.
	Extended bool `json:"-"`
	// BodyUnsigned allows Content without anything that stands for the body: {body}, {sorted_form} or {crc32}. Whoever has seen one
	// such delivery can send its signature with another body.
	BodyUnsigned bool `json:"-"`
	// EmptyBody refuses a delivery with a body, so that Content needs none.
	EmptyBody bool `json:"-"`
	// BodyHash is where the body's SHA-256 in hex is, which is compared, so that Content needs no body: a query parameter where
	// Content has {url}, or claim, with the claim's name, of a JWT.
	BodyHash *Source `json:"-"`
	// PortVariants tries {url} as it is and, where it has a port, without; where it has none, with the default one.
	PortVariants bool `json:"-"`
	// KeyHash is a hash of the decoded secret that is the key: sha1 or sha256. Default none.
	KeyHash string `json:"-"`
	// KeyName is the character that may separate the key's name from the key in a secret: name|key. The name is for [Answer]
	// and for signing a List in which signatures have the key's name.
	KeyName string `json:"-"`
	// RefusedSecrets are secrets that everybody knows.
	RefusedSecrets []string `json:"-"`
	// Certificate is that of an rsa scheme.
	Certificate *Certificate `json:"-"`
	// Pin is a value of the delivery that the secret must equal: where anybody can have the provider sign something, the key
	// of an endpoint doesn't tell whose events they are. It must be signed.
	Pin *Source `json:"-"`
}

// Certificate is the certificate that a delivery names.
type Certificate struct {
	// URL is where the delivery says what its certificate's URL is.
	URL Source
	// Pattern is a regular expression that the whole URL must match. It must pin the scheme, https, and the host.
	Pattern string
	// Names are patterns of the certificate's DNS names, or of its common name where it has none; one must match.
	Names []string
}

// List is the layout of a signature header with several elements, such as t=1700000000,v1=5257a8…,v1=8f21… (Stripe) or
// v1,g0hM9S… v1,bm9ldH… (Standard Webhooks). Any signature in it may match; elements that are neither a named signature nor the
// timestamp are ignored, and so are signatures that can't be decoded, and everything after the first 256 elements.
type List struct {
	// Separator stands between elements: one character. White space around elements is ignored.
	Separator string `json:"separator"`
	// Assign stands between an element's name and its value: one character. Empty: elements have no names written, the first
	// is called 1, the second 2, and so on.
	Assign string `json:"assign"`
	// Names are the names of elements that are signatures; * is all but the timestamp's.
	Names []string `json:"names"`
}

// Timestamp is where the signed time is and how it is written.
type Timestamp struct {
	// From is header, element (of the signature header's List), json, form, or claim (of a JWT).
	From string `json:"from"`
	// Name is the header's, element's, field's or claim's name, or the JSON path.
	Name string `json:"name"`
	// Format is unix (seconds, the default), unix_ms, unix_auto (seconds or milliseconds, by the number's size) or rfc3339.
	Format string `json:"format,omitempty"`
}

// The values of [Timestamp.Format], and FromElement and FromClaim for [Timestamp.From].
const (
	FromElement    = "element"
	FromClaim      = "claim"
	FormatUnix     = "unix"
	FormatUnixMS   = "unix_ms"
	FormatUnixAuto = "unix_auto"
	FormatRFC3339  = "rfc3339"
)

const (
	// maxSignatureHeader bounds the signature header, in bytes.
	maxSignatureHeader = 8 << 10
	// maxElements bounds how many elements of a list header are looked at.
	maxElements = 256
	// maxHMACs and maxPublicKeySignatures bound how many signatures of one header are tried; the latter cost more.
	maxHMACs               = 32
	maxPublicKeySignatures = 8
)
