package webhookdedup

import (
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/http"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
)

// maxEventID is the length in bytes up to which an event ID stands in the key as it is, and a scope too.
const maxEventID = 256

// eventID joins the encoded parts of an event's identity. One that is too long becomes its digest; the beginning of the
// original is then returned as well, so that a person can recognise the event in its record.
func eventID(parts []string) (id, original string) {
	if len(parts) == 1 {
		id = claim.EncodePart(parts[0])
	} else {
		encoded := make([]string, len(parts))
		for i, part := range parts {
			encoded[i] = claim.EncodePart(part)
		}
		id = strings.Join(encoded, ":")
	}
	if len(id) <= maxEventID {
		return id, ""
	}
	return hashedID([]byte(id)), id[:maxEventID]
}

// hashedID is the event ID of something that has none of its own that could stand in a key.
func hashedID(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256-" + hex.EncodeToString(sum[:])
}

// defaultScope tells endpoints apart that are registered separately at a provider: they are sent the same event with
// the same event ID, and must not hide it from each other. It is the host, lower case and without a port, and the path
// as the provider called it.
func defaultScope(r *http.Request) string {
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	path := r.URL.Path
	if original, ok := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request); ok {
		path = original.URL.Path
	}
	// Cleaned, because Caddy routes //hook and /%68ook like /hook: one endpoint is one scope.
	return strings.ToLower(strings.TrimSuffix(host, ".")) + caddyhttp.CleanPath(path, true)
}

// key is what the store knows of the event.
func (h *Handler) key(scope, eventID string) claim.Key {
	if scope = claim.EncodePart(scope); len(scope) > maxEventID {
		scope = hashedID([]byte(scope))
	}
	return claim.Key{Environment: h.app.environment, Provider: h.spec.ID, Scope: scope, EventID: eventID}
}
