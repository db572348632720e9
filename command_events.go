package webhookdedup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
)

const eventPath = "events/"

// findEvents returns the record of a key, or the records of all keys that have an event ID, which may be given as the
// provider shows it.
func (c *adminClient) findEvents(ctx context.Context, keyOrID string) ([]eventJSON, error) {
	if _, isKey := claim.SplitKey(keyOrID); isKey {
		var event eventJSON
		err := c.get(ctx, eventPath+url.PathEscape(keyOrID), &event)
		if err == nil {
			return []eventJSON{event}, nil
		}
		if known := (*adminError)(nil); !errors.As(err, &known) || known.status != exitFailed {
			return nil, err
		}
	}
	asSent, _ := eventID([]string{keyOrID})
	for _, id := range []string{keyOrID, asSent} {
		var found []eventJSON
		err := c.eachPage(ctx, url.Values{"event_id": {id}, "limit": {"1000"}}, func(page pageJSON) bool {
			found = append(found, page.Events...)
			return true
		})
		if err != nil || len(found) > 0 {
			return withoutRepeats(found), err
		}
		if id == asSent {
			break
		}
	}
	return nil, &adminError{exitFailed, fmt.Errorf(noRecord+"%q, neither as a key nor as an event ID: no delivery of it was verified and claimed, "+
		"or it is older than the route's ttl; 'caddy webhook-dedup list --provider <name>' shows what there is", keyOrID)}
}

// eachPage calls f with every page of a list until f returns false. A store may return the same record twice.
func (c *adminClient) eachPage(ctx context.Context, query url.Values, f func(pageJSON) bool) error {
	for {
		var page pageJSON
		if err := c.get(ctx, "events?"+query.Encode(), &page); err != nil {
			return err
		}
		if !f(page) || page.Cursor == "" {
			return nil
		}
		query.Set("cursor", page.Cursor)
	}
}

func withoutRepeats(events []eventJSON) []eventJSON {
	seen := map[[2]string]bool{}
	kept := events[:0]
	for _, e := range events {
		if id := [2]string{e.Store, e.Key}; !seen[id] {
			seen[id] = true
			kept = append(kept, e)
		}
	}
	return kept
}

// eventHead has the columns of lists.
var eventHead = []string{"STATE", "ATTEMPTS", "DUPLICATES", "STATUS", "UPDATED", "TYPE", "KEY"}

func eventRow(e eventJSON) []string {
	return []string{
		e.State, strconv.Itoa(e.Attempts), strconv.FormatInt(e.Duplicates, 10), orDash(e.Status), shownTime(e.Updated), printable(e.EventType), printable(e.Key),
	}
}

// printTable prints rows under a heading.
func printTable(out *screen, head []string, rows [][]string) {
	for i, line := range alignColumns(append([][]string{head}, rows...)) {
		if i == 0 {
			line = out.style(styleBold, line)
		}
		fmt.Fprintln(out, line)
	}
}

func printEventTable(out *screen, events []eventJSON) {
	rows := make([][]string, len(events))
	for i, e := range events {
		rows[i] = eventRow(e)
	}
	printTable(out, eventHead, rows)
}

// printEvent prints one record in full, and what becomes of the event's next delivery.
func printEvent(out *screen, e eventJSON) {
	rows := [][]string{{"key", e.Key}, {"provider", e.Provider}, {"scope", e.Scope}, {"event ID", e.EventID}}
	if e.OriginalID != "" {
		rows = append(rows, []string{"its beginning", e.OriginalID + "…"})
	}
	rows = append(rows, [][]string{
		{"event type", e.EventType}, {"state", e.State}, {"attempts", strconv.Itoa(e.Attempts)},
		{"duplicates", strconv.FormatInt(e.Duplicates, 10)}, {"first seen", timeAndAge(e.FirstSeen)}, {"updated", timeAndAge(e.Updated)},
	}...)
	if e.LeaseUntil != nil {
		rows = append(rows, []string{"lease until", timeAndAge(*e.LeaseUntil)})
	}
	rows = append(rows, []string{"status", orDash(e.Status)}, []string{"body SHA-256", e.BodySHA256}, []string{"store", e.Store})
	for _, row := range rows {
		value := printable(row[1])
		if value == "" {
			value = "-"
		}
		fmt.Fprintln(out, pad(row[0], 15)+value)
	}
	fmt.Fprintln(out, "\n"+out.style(styleDim, nextDelivery(e)))
}

// nextDelivery says what becomes of the event's next delivery.
func nextDelivery(e eventJSON) string {
	switch {
	case e.State == claim.Processed.String():
		return "Its next delivery is answered as a duplicate. For it to be processed again, forget it."
	case e.State == claim.Failed.String():
		return "The application has not acknowledged it. Its next delivery is processed."
	case e.LeaseUntil != nil && time.Until(*e.LeaseUntil) > 0:
		return "It is being processed. Deliveries meanwhile wait, or are told to come back."
	}
	return "It was being processed when its lease ran out: that proxy has crashed or cannot reach the store. Its next delivery is processed."
}

func orDash(n int) string {
	if n == 0 {
		return "-"
	}
	return strconv.Itoa(n)
}

func shownTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") }

func timeAndAge(t time.Time) string {
	age := time.Since(t).Round(time.Second)
	if age < 0 {
		return shownTime(t) + " UTC, in " + shortDuration(-age)
	}
	return shownTime(t) + " UTC, " + shortDuration(age) + " ago"
}

// printable keeps what came from outside from steering the terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}

// printJSONLine prints one object a line.
func printJSONLine(out io.Writer, value any) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}
