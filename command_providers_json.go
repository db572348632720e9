package webhookdedup

import (
	"time"

	"github.com/webhook-dedup/caddy-webhook-dedup/provider"
)

// providerFacts is the JSON form of what is known of a provider. Durations are in seconds; 0 is unknown, or none.
type providerFacts struct {
	ID                     string            `json:"id"`
	Title                  string            `json:"title"`
	Docs                   string            `json:"docs,omitempty"`
	Own                    bool              `json:"own,omitempty"`
	Methods                []string          `json:"methods"`
	Signatures             []provider.Scheme `json:"signatures"`
	ToleranceSeconds       int64             `json:"tolerance_seconds"`
	EventID                []provider.Part   `json:"event_id"`
	Fallbacks              [][]provider.Part `json:"event_id_fallbacks,omitempty"`
	EventType              provider.Part     `json:"event_type,omitempty"`
	Account                provider.Part     `json:"account,omitempty"`
	Handshakes             []handshakeFacts  `json:"handshakes,omitempty"`
	Retry                  retryFacts        `json:"retry"`
	ResponseTimeoutSeconds float64           `json:"response_timeout_seconds"`
	TTLSeconds             int64             `json:"ttl_seconds"`
	MaxBody                int64             `json:"max_body,omitempty"`
	BodyHashSafe           bool              `json:"body_hash_safe"`
	Replay                 bool              `json:"replay"`
	InFlightStatus         int               `json:"in_flight_status"`
	Traps                  []string          `json:"traps,omitempty"`
	Evidence               []string          `json:"evidence,omitempty"`
	Unverified             []string          `json:"unverified,omitempty"`
	Confidence             string            `json:"confidence,omitempty"`
}

type retryFacts struct {
	Automatic           bool     `json:"automatic"`
	WindowSeconds       int64    `json:"window_seconds"`
	Attempts            int      `json:"attempts,omitempty"`
	Schedule            string   `json:"schedule,omitempty"`
	On                  []string `json:"on,omitempty"`
	Except              []string `json:"except,omitempty"`
	Manual              string   `json:"manual,omitempty"`
	ManualWindowSeconds int64    `json:"manual_window_seconds,omitempty"`
}

type handshakeFacts struct {
	Name   string `json:"name"`
	Method string `json:"method"`
	Signed bool   `json:"signed"`
}

func newProviderFacts(s provider.Spec) providerFacts {
	f := providerFacts{
		ID:                     s.ID,
		Title:                  s.Title,
		Docs:                   s.Docs,
		Own:                    s.Own,
		Methods:                methodsOf(s),
		Signatures:             s.Schemes,
		ToleranceSeconds:       int64(toleranceOf(s) / time.Second),
		EventID:                s.EventID,
		Fallbacks:              s.Fallbacks,
		EventType:              s.EventType,
		Account:                s.Account,
		ResponseTimeoutSeconds: s.ResponseTimeout.Seconds(),
		TTLSeconds:             int64(s.TTL / time.Second),
		MaxBody:                s.MaxBody,
		BodyHashSafe:           s.BodyHashSafe,
		Replay:                 s.Replay,
		InFlightStatus:         inFlightStatusOf(s),
		Traps:                  s.Traps,
		Evidence:               s.Evidence,
		Unverified:             s.Unverified,
		Confidence:             s.Confidence,
		Retry: retryFacts{
			Automatic:           s.Retry.Automatic,
			WindowSeconds:       int64(s.Retry.Window / time.Second),
			Attempts:            s.Retry.Attempts,
			Schedule:            s.Retry.Schedule,
			On:                  s.Retry.On,
			Except:              s.Retry.Except,
			Manual:              s.Retry.Manual,
			ManualWindowSeconds: int64(s.Retry.ManualWindow / time.Second),
		},
	}
	// An empty list tells a program more than null.
	if f.Signatures == nil {
		f.Signatures = []provider.Scheme{}
	}
	if f.EventID == nil {
		f.EventID = []provider.Part{}
	}
	for _, h := range s.Handshakes {
		setDefault(&h.Method, "POST")
		f.Handshakes = append(f.Handshakes, handshakeFacts{h.Name, h.Method, h.Signed})
	}
	return f
}

func methodsOf(s provider.Spec) []string {
	if len(s.Methods) == 0 {
		return []string{"POST"}
	}
	return s.Methods
}

// toleranceOf is zero where nothing is timestamped.
func toleranceOf(s provider.Spec) time.Duration {
	for _, scheme := range s.Schemes {
		if scheme.Timestamp != nil {
			tolerance := s.Tolerance
			setDefault(&tolerance, provider.DefaultTolerance)
			return tolerance
		}
	}
	return 0
}

func inFlightStatusOf(s provider.Spec) int {
	status := s.InFlightStatus
	setDefault(&status, 503)
	return status
}
