package webhookdedup

import (
	"net/http"

	"go.uber.org/zap/zapcore"
)

// result is what became of one delivery. The same word stands in the Webhook-Dedup header, the metrics, the log and the
// placeholder {http.webhook_dedup.result}.
type result string

const (
	resultProcessed        result = "processed"         // the application acknowledged the event
	resultFailed           result = "failed"            // it did not; the claim was released
	resultDuplicate        result = "duplicate"         // the event was processed before
	resultInFlight         result = "in_flight"         // another delivery of it is being processed
	resultInvalidSignature result = "invalid_signature" // 401
	resultMissingID        result = "missing_id"        // 400, where on_missing_id is reject
	resultTooLarge         result = "too_large"         // 413
	resultBadRequest       result = "bad_request"       // 400
	resultNotAllowed       result = "not_allowed"       // 405
	resultOverloaded       result = "overloaded"        // 503
	resultStoreError       result = "store_error"       // 503
	resultPassed           result = "passed"            // forwarded without a claim: nothing to claim
	resultUnguarded        result = "unguarded"         // forwarded without a claim: the store failed
)

var results = []result{resultProcessed, resultFailed, resultDuplicate, resultInFlight, resultInvalidSignature, resultMissingID, resultTooLarge,
	resultBadRequest, resultNotAllowed, resultOverloaded, resultStoreError, resultPassed, resultUnguarded}

// level is the log level of a delivery that ended so.
func (r result) level() zapcore.Level {
	switch r {
	case resultProcessed, resultDuplicate, resultInFlight, resultPassed:
		return zapcore.InfoLevel
	case resultStoreError, resultUnguarded:
		return zapcore.ErrorLevel
	}
	return zapcore.WarnLevel
}

// burst is how many lines a second one route writes about deliveries that ended so; 0 is without a bound. Those that
// somebody without a secret can cause at any rate have the lowest one. A delivery that was processed never goes without
// its line.
func (r result) burst() int64 {
	switch r {
	case resultProcessed:
		return 0
	case resultDuplicate, resultFailed:
		return outageBurst
	}
	return floodBurst
}

// refusal is the module's own negative answer to a delivery.
type refusal struct {
	result result
	status int
	cause  error // for the log; never holds a secret, a body or a signature
}

func refuse(r result, status int, cause error) *refusal {
	return &refusal{result: r, status: status, cause: cause}
}

// retriable reports whether the provider is told when to come back.
func (f *refusal) retriable() bool {
	return f.status == http.StatusServiceUnavailable || f.result == resultInFlight
}
