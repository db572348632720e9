package webhookdedup

import (
	"net/http"
	"slices"
	"time"

	"go.uber.org/zap"
)

// advise warns where the configuration is valid but conflicts with what is known of the provider.
func (h *Handler) advise() {
	log := h.logger.With(zap.String("provider", h.Provider), zap.String("defined_at", h.DefinedAt))
	retry := h.spec.Retry
	if h.SignatureOff {
		log.Warn("signatures are not verified: whoever reaches this endpoint can send events, and burn the IDs of real ones")
	}
	if h.DefinedAt != "" && slices.ContainsFunc(h.Secrets, func(s string) bool { return !placeholderPattern.MatchString(s) }) {
		log.Warn("a secret stands literally in the configuration, where the admin API shows it; use {env.NAME} or {file./path}")
	}
	if h.secrets != nil {
		for _, name := range h.secrets.unknown() {
			log.Warn("a placeholder in a secret is not known at load; unless a directive such as map sets it, every delivery is refused",
				zap.String("placeholder", name))
		}
	}
	if h.replayLimit > h.MaxResponse {
		log.Warn("duplicate replay is larger than max_response: longer responses are never stored",
			zap.Int64("replay", h.replayLimit), zap.Int64("max_response", h.MaxResponse))
	}
	if ttl := time.Duration(h.TTL); ttl < retry.Window {
		log.Warn("ttl is shorter than the provider retries: a late retry will be processed again",
			zap.Duration("ttl", ttl), zap.Duration("retry_window", retry.Window))
	}
	if h.inFlight == inFlightWait && h.spec.ResponseTimeout > 0 && h.wait >= h.spec.ResponseTimeout {
		log.Warn("in_flight waits longer than the provider does: it will have hung up before it is answered",
			zap.Duration("wait", h.wait), zap.Duration("response_timeout", h.spec.ResponseTimeout))
	}
	if h.inFlight == inFlightAccept {
		log.Warn("in_flight accept tells the provider 200 before the event is processed: if that run fails, the event is lost")
	}
	if h.inFlight != inFlightAccept && retry.Automatic && !retry.OnStatus(h.inFlightStatus) {
		log.Warn("the provider does not retry on the status of in_flight: the event is lost if the other delivery fails",
			zap.Int("status", h.inFlightStatus))
	}
	if h.inFlight == inFlightReject && !retry.Automatic {
		log.Warn("in_flight reject: this provider does not retry by itself, so a rejected delivery does not come back")
	}
	if h.OnStoreError == storeErrorReject && !retry.OnStatus(http.StatusServiceUnavailable) {
		log.Warn("on_store_error reject: this provider does not retry a 503 by itself, so events are lost while the store fails")
	}
	if timeout, lease := time.Duration(h.Timeout), time.Duration(h.Lease); lease > timeout+time.Minute {
		log.Warn("lease is much longer than timeout: after a crash the event stays blocked for longer than any run could take",
			zap.Duration("lease", lease), zap.Duration("timeout", timeout))
	}
}
