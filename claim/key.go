package claim

import "strings"

// SchemeVersion is the version of the key scheme and record layout below. Stores put it into their prefix, so that a
// later scheme never reads an older one's records as its own.
const SchemeVersion = "1"

// Key is the parts of a key, encoded.
type Key struct {
	Environment, Provider, Scope string
	// EventID may itself have several parts, joined by colons.
	EventID string
}

// String joins the parts.
func (k Key) String() string {
	return k.Environment + ":" + k.Provider + ":" + k.Scope + ":" + k.EventID
}

// SplitKey is the inverse of [Key.String].
func SplitKey(key string) (Key, bool) {
	p := strings.SplitN(key, ":", 4)
	if len(p) != 4 {
		return Key{}, false
	}
	return Key{p[0], p[1], p[2], p[3]}, true
}

// EncodePart makes s fit to be a part of a key: percent, colon, space, control characters and everything outside ASCII
// are percent-encoded, so that parts never run into each other and a key is always a legal header value.
func EncodePart(s string) string {
	n := 0
	for i := range len(s) {
		if mustEncode(s[i]) {
			n++
		}
	}
	if n == 0 {
		return s
	}
	const hexDigits = "0123456789ABCDEF"
	out := make([]byte, 0, len(s)+2*n)
	for i := range len(s) {
		if c := s[i]; mustEncode(c) {
			out = append(out, '%', hexDigits[c>>4], hexDigits[c&15])
		} else {
			out = append(out, c)
		}
	}
	return string(out)
}

func mustEncode(c byte) bool {
	return c <= ' ' || c >= 0x7f || c == '%' || c == ':'
}
