package postgres

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
)

// lookMax bounds the rows that one call of List looks at, however few of them are asked for.
const lookMax = 10_000

// List implements [claim.Store]: in the order of the primary key, so that a page costs what it holds.
func (s *store) List(ctx context.Context, q claim.Query) (claim.Page, error) {
	after, err := parseCursor(q.Cursor)
	if err != nil {
		return claim.Page{}, err
	}
	if err := s.prepared(ctx); err != nil {
		return claim.Page{}, fmt.Errorf("listing postgres: %w", err)
	}
	limit := q.Bounded().Limit
	var state, eventID, provider any
	if q.State != 0 {
		state = q.State.String()
	}
	if q.EventID != "" {
		eventID = column(q.EventID)
	}
	if q.Provider != "" {
		provider = column(q.Provider)
	}
	args := after.args(lookMax, limit, eventID, state, provider, beginning(q.Prefix))
	var p claim.Page
	err = s.send(func(mode pgx.QueryExecMode) error {
		rows, err := s.pool.Query(ctx, s.sql.list, append([]any{mode}, args...)...)
		if err != nil {
			return err
		}
		p, err = readPage(rows, q, limit)
		return err
	})
	if err != nil {
		return claim.Page{}, fmt.Errorf("listing postgres: %w", err)
	}
	return p, nil
}

func readPage(rows pgx.Rows, q claim.Query, limit int) (p claim.Page, err error) {
	defer rows.Close()
	var looked, found int
	var last, at position
	for rows.Next() {
		var r scanner
		var eventID, provider, scope, environment, long *string
		err := rows.Scan(append([]any{
			&looked, &last.eventID, &last.provider, &last.scope, &last.environment, &eventID, &provider, &scope, &environment, &long,
		}, r.targets()...)...)
		if err != nil {
			return claim.Page{}, err
		}
		if eventID == nil {
			continue // a page with none that is asked for
		}
		found++
		at = position{*eventID, *provider, *scope, *environment}
		record, err := r.record(at.key(long))
		if err != nil {
			return claim.Page{}, fmt.Errorf("key %q: %w", at.key(long), err)
		}
		if q.Matches(record) {
			p.Records = append(p.Records, record)
		}
	}
	switch {
	case found == limit:
		p.Cursor = at.cursor()
	case looked == lookMax:
		p.Cursor = last.cursor()
	}
	return p, rows.Err()
}

// beginning is what the text of a key begins with if the key begins with prefix, which may end within a character.
func beginning(prefix string) any {
	for len(prefix) > 0 && prefix[len(prefix)-1] >= 0x80 {
		prefix = prefix[:len(prefix)-1]
	}
	return textOrNull(prefix)
}

// No part of a key but the last, the event ID, has a colon in it.
func (p position) cursor() string { return claim.EncodeCursor(p.text()) }

func parseCursor(cursor string) (position, error) {
	if cursor == "" {
		return position{}, nil
	}
	text, err := claim.DecodeCursor(cursor)
	if err != nil {
		return position{}, err
	}
	k, ok := claim.SplitKey(text)
	if !ok || !utf8.ValidString(text) || strings.Contains(text, "\x00") {
		return position{}, fmt.Errorf("%w: the cursor is not one that this store gave out", claim.ErrArgument)
	}
	return position{k.EventID, k.Provider, k.Scope, k.Environment}, nil
}

// Stats implements [claim.Store]. It reads the table once.
func (s *store) Stats(ctx context.Context) (claim.Stats, error) {
	if err := s.prepared(ctx); err != nil {
		return claim.Stats{}, fmt.Errorf("counting in postgres: %w", err)
	}
	var stats claim.Stats
	err := s.send(func(mode pgx.QueryExecMode) error {
		rows, err := s.pool.Query(ctx, s.sql.stats, mode)
		if err != nil {
			return err
		}
		stats, err = readStats(rows)
		return err
	})
	if err != nil {
		return claim.Stats{}, fmt.Errorf("counting in postgres: %w", err)
	}
	return stats, nil
}

func readStats(rows pgx.Rows) (claim.Stats, error) {
	stats := claim.Stats{Counts: map[string]map[claim.State]int64{}}
	var provider, word string
	var n, oldest int64
	_, err := pgx.ForEachRow(rows, []any{&provider, &word, &n, &oldest}, func() error {
		state, err := claim.ParseState(word)
		if err != nil {
			return errStrange
		}
		name := fromText(provider)
		if stats.Counts[name] == nil {
			stats.Counts[name] = map[claim.State]int64{}
		}
		stats.Counts[name][state] += n
		if at := time.UnixMilli(oldest); state == claim.Processing && (stats.OldestProcessing.IsZero() || at.Before(stats.OldestProcessing)) {
			stats.OldestProcessing = at
		}
		return nil
	})
	return stats, err
}
