package postgres

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
)

// The server's text holds neither zero bytes nor what is not UTF-8, and its indexes no long values. What the module writes
// has neither, apart from long paths; but a store takes every key.

const (
	// escapes is where the bytes that text cannot hold are put: 256 code points for private use, which are escaped
	// themselves, byte by byte, where they occur.
	escapes = 0x10F700
	// partMax is the length in bytes up to which a part of a key stands in its column as it is. Four of them fit into an
	// entry of an index.
	partMax = 600
	// cutAt is what is left of a longer one, in front of its digest.
	cutAt = 100
)

// toText makes text of any bytes. UTF-8 without zero bytes stays as it is.
func toText(s string) string {
	plain := true
	for _, r := range s {
		if !isPlain(r) {
			plain = false
			break
		}
	}
	if plain {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if isPlain(r) || r == utf8.RuneError && n > 1 {
			b.WriteString(s[:n])
		} else {
			for i := range n {
				b.WriteRune(escapes + rune(s[i]))
			}
		}
		s = s[n:]
	}
	return b.String()
}

func isPlain(r rune) bool { return r != 0 && r != utf8.RuneError && r&^0xff != escapes }

// fromText is the inverse of toText.
func fromText(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r&^0xff == escapes }) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if r&^0xff == escapes {
			b.WriteByte(byte(r))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// position is the primary key of a row.
type position struct{ eventID, provider, scope, environment string }

// locate returns the row of a key, and the whole key where the row's own columns do not tell it.
func locate(key string) (position, any, error) {
	if err := claim.CheckKey(key); err != nil {
		return position{}, nil, err
	}
	k, ok := claim.SplitKey(key)
	if !ok {
		return position{}, nil, fmt.Errorf("%w: the key is not <environment>:<provider>:<scope>:<event ID>", claim.ErrArgument)
	}
	p := position{column(k.EventID), column(k.Provider), column(k.Scope), column(k.Environment)}
	if whole := toText(key); whole != p.text() {
		return p, whole, nil
	}
	return p, nil, nil
}

// column is a part of a key as its column has it. No part that fits is like one that was cut: the sign between the
// beginning and the digest is not ASCII, as keys are.
func column(part string) string {
	text := toText(part)
	if len(text) <= partMax {
		return text
	}
	sum := sha256.Sum256([]byte(part))
	return strings.ToValidUTF8(text[:cutAt], "") + "…" + hex.EncodeToString(sum[:])
}

// text is the whole key of a row whose parts are not cut.
func (p position) text() string {
	return p.environment + ":" + p.provider + ":" + p.scope + ":" + p.eventID
}

// key is the whole key of a row.
func (p position) key(long *string) string {
	if long != nil {
		return fromText(*long)
	}
	return fromText(p.text())
}

// args are the first arguments of every statement about one row.
func (p position) args(more ...any) []any {
	return append([]any{p.eventID, p.provider, p.scope, p.environment}, more...)
}

// textOrNull is null where there is no text.
func textOrNull(s string) any {
	if s == "" {
		return nil
	}
	return toText(s)
}

func digestOrNull(sum [32]byte) any {
	if sum == [32]byte{} {
		return nil
	}
	return sum[:]
}
