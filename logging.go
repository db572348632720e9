package webhookdedup

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// How many lines of a kind one route writes in a second. The rest is counted, and the next line says how many there
// were: a flood must not fill the disk, and metrics have the numbers.
const (
	floodBurst  = 10  // anybody can cause it
	outageBurst = 100 // it takes the secret, or an outage of the application or the store
)

// maxEventType is the length in bytes up to which the provider's word for the kind of event is kept.
const maxEventType = 128

// shortened cuts an event type that is too long to be one: it is only shown.
func shortened(eventType string) string {
	if len(eventType) <= maxEventType {
		return eventType
	}
	return strings.Clone(strings.ToValidUTF8(eventType[:maxEventType], ""))
}

// lineLimit bounds how many lines of one kind are written in a second.
type lineLimit struct {
	burst   int64
	second  atomic.Int64
	count   atomic.Int64
	omitted atomic.Int64 // since the last line that was written
}

// allow reports whether a line may be written, and how many were left out before it.
func (l *lineLimit) allow(now time.Time) (omitted int64, ok bool) {
	second := now.Unix()
	if old := l.second.Load(); old != second && l.second.CompareAndSwap(old, second) {
		l.count.Store(0)
	}
	if l.count.Add(1) > l.burst {
		l.omitted.Add(1)
		return 0, false
	}
	return l.omitted.Swap(0), true
}

func newResultLimits() map[result]*lineLimit {
	limits := map[result]*lineLimit{}
	for _, r := range results {
		if burst := r.burst(); burst > 0 {
			limits[r] = &lineLimit{burst: burst}
		}
	}
	return limits
}

// limited is a logger that writes each message at most burst times in a second.
func limited(logger *zap.Logger, burst int64) *zap.Logger {
	return logger.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
		return &limitedCore{core, burst, new(sync.Map)}
	}))
}

// limitedCore keeps a limit for each message. Messages are constants, so there are few.
type limitedCore struct {
	zapcore.Core
	burst  int64
	limits *sync.Map // of *lineLimit by message
}

// With implements zapcore.Core.
func (c *limitedCore) With(fields []zapcore.Field) zapcore.Core {
	return &limitedCore{c.Core.With(fields), c.burst, c.limits}
}

// Check implements zapcore.Core.
func (c *limitedCore) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if !c.Enabled(entry.Level) {
		return checked
	}
	limit, ok := c.limits.Load(entry.Message)
	if !ok {
		limit, _ = c.limits.LoadOrStore(entry.Message, &lineLimit{burst: c.burst})
	}
	omitted, ok := limit.(*lineLimit).allow(entry.Time)
	switch {
	case !ok:
		return checked
	case omitted > 0:
		return c.Core.With([]zapcore.Field{omittedLines(omitted)}).Check(entry, checked)
	}
	return c.Core.Check(entry, checked)
}

func omittedLines(n int64) zap.Field { return zap.Int64("lines_omitted", n) }

// MarshalLogObject puts the same fields into the delivery's log line and into the access log.
func (d *delivery) MarshalLogObject(enc zapcore.ObjectEncoder) error {
	enc.AddString("provider", d.h.spec.ID)
	enc.AddString("result", string(d.result))
	if d.eventID != "" {
		enc.AddString("event_id", d.eventID)
		enc.AddString("event_type", d.eventType)
		enc.AddString("key", d.key)
	}
	if d.record.Attempts > 0 {
		enc.AddInt("attempt", d.record.Attempts)
	}
	if d.elements > 0 {
		enc.AddInt("elements", d.elements)
	}
	return nil
}

// log writes the one line of the delivery and adds the same fields to the access log.
func (d *delivery) log() {
	if extra, ok := d.r.Context().Value(caddyhttp.ExtraLogFieldsCtxKey).(*caddyhttp.ExtraLogFields); ok {
		extra.Set(zap.Object("webhook_dedup", d))
	}
	if d.result == "" || d.isPlain() {
		return
	}
	line := d.h.logger.Check(d.result.level(), "delivery")
	if line == nil {
		return
	}
	var omitted int64
	if limit := d.h.limits[d.result]; limit != nil {
		var ok bool
		if omitted, ok = limit.allow(line.Time); !ok {
			return
		}
	}
	fields := make([]zap.Field, 0, 8)
	fields = append(fields, zap.Inline(d), zap.Duration("duration", time.Since(d.arrived)))
	if d.status != 0 {
		fields = append(fields, zap.Int("upstream_status", d.status), zap.Duration("upstream_duration", d.upstream))
	}
	if d.h.observes() {
		fields = append(fields, zap.String("mode", modeObserve))
	}
	if d.cause != nil {
		fields = append(fields, zap.Error(d.cause))
	}
	if omitted > 0 {
		fields = append(fields, omittedLines(omitted))
	}
	line.Write(fields...)
}

// logger names the event in every line about something out of the ordinary.
func (d *delivery) logger() *zap.Logger { return d.loggerOf(&d.claimedEvent) }

// currentLog writes to the log of the running configuration: a store outlives the one that it was opened for.
type currentLog struct {
	name   string
	fields []zapcore.Field
}

func (c *currentLog) core() zapcore.Core { return caddy.Log().Core() }

// Enabled implements zapcore.Core.
func (c *currentLog) Enabled(level zapcore.Level) bool { return c.core().Enabled(level) }

// With implements zapcore.Core.
func (c *currentLog) With(fields []zapcore.Field) zapcore.Core {
	return &currentLog{c.name, append(c.fields[:len(c.fields):len(c.fields)], fields...)}
}

// Check implements zapcore.Core.
func (c *currentLog) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	entry.LoggerName = c.name
	return c.core().With(c.fields).Check(entry, checked)
}

// Write implements zapcore.Core. Check has handed entries to the configuration's core, which writes them.
func (c *currentLog) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	return c.core().Write(entry, fields)
}

// Sync implements zapcore.Core.
func (c *currentLog) Sync() error { return c.core().Sync() }
