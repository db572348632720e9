package provider

import (
	"strconv"
	"time"
)

// maxUnix is the last second of the year 9999, the largest timestamp that is accepted.
const maxUnix = 253402300799

// minUnixMS is from where on a number counts milliseconds, if it may count either: 1973 in them, 5138 in seconds.
const minUnixMS = 100_000_000_000

// timestamp returns the timestamp's text as the provider signed it, empty for a scheme without one.
func (c *Compiled) timestamp(d *Delivery, s *scheme, value string) (string, error) {
	if s.timestamp == nil {
		return "", nil
	}
	text := ""
	switch s.timestamp.From {
	case FromHeader:
		text = d.Header[s.timeHeader][0] // checked
	case FromJSON:
		text = c.values(d)[s.timeSlot]
	case FromForm:
		text = lastField(c.form(d), s.timestamp.Name)
	case FromElement:
		n := 0
		for e := s.elements(value); ; {
			name, v, more := e.next()
			if !more {
				break
			}
			if name == s.timestamp.Name {
				text = v
				n++
			}
		}
		if n > 1 {
			// One parser would take the first, another the last.
			return "", ErrTimestampMalformed
		}
	}
	if text == "" {
		return "", ErrTimestampMissing
	}
	return text, nil
}

// checkAge checks a timestamp's form, and its distance from now unless tolerance is negative.
func (s *scheme) checkAge(text string, now time.Time, tolerance time.Duration) error {
	if s.timestamp == nil {
		return nil
	}
	at, precision, ok := parseTimestamp(s.timestamp.Format, text)
	if !ok {
		return ErrTimestampMalformed
	}
	if tolerance < 0 {
		return nil
	}
	// As the providers' SDKs do, whole units are compared: 300.9 s is not more than 300 s for a timestamp in seconds.
	switch age := now.Truncate(precision).Sub(at); {
	case age > tolerance:
		return ErrStale
	case age < -tolerance: // and not -age > tolerance: the smallest Duration has no negative
		return ErrFuture
	}
	return nil
}

func parseTimestamp(format, text string) (at time.Time, precision time.Duration, ok bool) {
	if format == FormatRFC3339 {
		at, err := time.Parse(time.RFC3339Nano, text)
		return at, time.Nanosecond, err == nil && len(text) <= 64 && at.Year() > 0
	}
	if len(text) == 0 || len(text) > 19 {
		return at, 0, false
	}
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return at, 0, false
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil:
	case format == FormatUnix && n <= maxUnix:
		return time.Unix(n, 0), time.Second, true
	case format == FormatUnixAuto && n < minUnixMS:
		return time.Unix(n, 0), time.Second, true
	case (format == FormatUnixMS || format == FormatUnixAuto) && n <= maxUnix*1000:
		return time.UnixMilli(n), time.Millisecond, true
	}
	return at, 0, false
}

func formatTimestamp(format string, at time.Time) string {
	switch format {
	case FormatUnixMS, FormatUnixAuto:
		return strconv.FormatInt(at.UnixMilli(), 10)
	case FormatRFC3339:
		return at.UTC().Format(time.RFC3339Nano)
	}
	return strconv.FormatInt(at.Unix(), 10)
}
