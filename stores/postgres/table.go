package postgres

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"
)

// version is that of the table's layout, which its comment tells.
const (
	version       = 1
	versionPrefix = "webhook_dedup "
)

// DDL returns the statements that make the table of this store, for an administrator who makes it for a user without
// the right to. The table is named as in the configuration.
func DDL(table string) (string, error) {
	quoted, err := quote(table)
	if err != nil {
		return "", err
	}
	return compile(quoted).table, nil
}

// quote makes an identifier of a name with or without a schema.
func quote(table string) (string, error) {
	parts := strings.Split(table, ".")
	if len(parts) > 2 {
		return "", fmt.Errorf("table %q has more than one dot; allowed are <table> and <schema>.<table>", table)
	}
	for _, part := range parts {
		if !isName(part) {
			return "", fmt.Errorf("table %q is no name of a table; allowed are 1 to 63 letters, digits and _, beginning with a letter or _", table)
		}
	}
	return pgx.Identifier(parts).Sanitize(), nil
}

func isName(s string) bool {
	for i, c := range []byte(s) {
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != "" && len(s) <= 63
}

// lockNumber is what nodes agree on when one of them makes or prunes the table.
func lockNumber(purpose, table string) int64 {
	h := fnv.New64a()
	h.Write([]byte("webhook_dedup " + purpose + " " + table))
	return int64(h.Sum64())
}

const (
	// prepareTimeout bounds one attempt to check and make the table.
	prepareTimeout = 10 * time.Second
	// prepareAgain is how long a failed attempt stands for those that come after it.
	prepareAgain = time.Second
)

// gate lets operations through once the table is known to be there. Whoever comes first starts the check, which goes on
// when that operation has run out of time.
type gate struct {
	table  string // quoted
	create bool
	open   atomic.Bool

	mu      sync.Mutex
	attempt *attempt
	told    bool // the statements have been logged
}

type attempt struct {
	done chan struct{}
	err  error
	over time.Time
}

// prepared returns when the table can be used, or an error that says why not.
func (s *store) prepared(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.gate.open.Load() {
		return nil
	}
	a := s.check()
	select {
	case <-a.done:
		return a.err
	case <-ctx.Done():
		return fmt.Errorf("looking for the table: %w", ctx.Err())
	}
}

// check returns the attempt that is under way or has just ended, or else starts one.
func (s *store) check() *attempt {
	g := &s.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if a := g.attempt; a != nil {
		select {
		case <-a.done:
			if a.err != nil && time.Since(a.over) < prepareAgain {
				return a
			}
		default:
			return a
		}
	}
	a := &attempt{done: make(chan struct{})}
	g.attempt = a
	s.goBackground(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, prepareTimeout)
		defer cancel()
		a.err = s.prepare(ctx)
		a.over = time.Now()
		g.open.Store(a.err == nil)
		close(a.done)
	})
	return a
}

// explain adds what can be done to some errors of the server. After one that says that the table has changed under the
// store it is checked again.
func (s *store) explain(err error) error {
	switch sqlState(err) {
	case "42P01", "42703", "42P10": // no such table, no such column, no such key
		s.gate.open.Store(false)
	case "42501":
		return fmt.Errorf("%w; the user needs SELECT, INSERT, UPDATE and DELETE on table %s", err, s.gate.table)
	case "25006":
		return fmt.Errorf("%w; is this a standby? In the dsn, target_session_attrs=read-write finds the primary among several hosts", err)
	case "53300":
		return fmt.Errorf("%w; lower max_connections here or raise the server's", err)
	}
	return err
}

// prepare makes sure that the table is there and has the right shape.
func (s *store) prepare(ctx context.Context) error {
	ready, err := s.inspect(ctx, s.pool)
	if ready || err != nil {
		return err
	}
	if !s.gate.create {
		s.tell()
		return fmt.Errorf("table %s does not exist, and create is off; an administrator can make it with the statements in the log and in docs/stores.md",
			s.gate.table)
	}
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		// Held to the end of the transaction, also through a PgBouncer.
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1::bigint)", pgx.QueryExecModeExec, lockNumber("table", s.gate.table)); err != nil {
			return err
		}
		if ready, err := s.inspect(ctx, tx); ready || err != nil {
			return err
		}
		for _, statement := range strings.SplitAfter(s.sql.table, ";\n") {
			if strings.TrimSpace(statement) == "" {
				continue
			}
			if _, err := tx.Exec(ctx, statement, pgx.QueryExecModeSimpleProtocol); err != nil {
				return err
			}
		}
		return nil
	})
	switch sqlState(err) {
	case "42501", "25006":
		s.tell()
		return fmt.Errorf("the user may not make table %s: %w; an administrator can make it with the statements in the log and in docs/stores.md",
			s.gate.table, err)
	case "3F000":
		return fmt.Errorf("making table %s: %w; make the schema first", s.gate.table, err)
	case "42P07", "23505": // somebody who does not take the lock was faster
		ready, err = s.inspect(ctx, s.pool)
		if err == nil && !ready {
			err = fmt.Errorf("table %s does not come into being", s.gate.table)
		}
	}
	if err != nil {
		return fmt.Errorf("making table %s: %w", s.gate.table, err)
	}
	return nil
}

// tell logs, once, the statements that make the table.
func (s *store) tell() {
	s.gate.mu.Lock()
	told := s.gate.told
	s.gate.told = true
	s.gate.mu.Unlock()
	if !told {
		s.log.Error("the table of the postgres store is missing", zap.String("table", s.gate.table), zap.String("statements", s.sql.table))
	}
}

// querier is what a pool and a transaction have in common.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// inspect reports whether the table is there. It is an error if it is not one of this store's.
func (s *store) inspect(ctx context.Context, q querier) (bool, error) {
	var kind, comment, shape *string
	err := q.QueryRow(ctx, `SELECT c.relkind::text, obj_description(c.oid, 'pg_class'), (
			SELECT string_agg(attname || ' ' || format_type(atttypid, NULL), ', ' ORDER BY attname) FROM pg_attribute
			WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped
		) FROM pg_class c WHERE c.oid = to_regclass($1::text)`, pgx.QueryExecModeExec, s.gate.table).Scan(&kind, &comment, &shape)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking for table %s: %w", s.gate.table, err)
	}
	if number, ok := strings.CutPrefix(or(comment), versionPrefix); ok {
		if n, err := strconv.Atoi(number); err == nil && n > version {
			return false, fmt.Errorf("table %s is of version %d, made by a later webhook_dedup; this one knows version %d: upgrade it, or name another table",
				s.gate.table, n, version)
		}
	}
	if missing := missingColumn(or(shape)); or(kind) != "r" && or(kind) != "p" || missing != "" {
		if missing == "" {
			missing = "it is no table"
		}
		return false, fmt.Errorf("table %s is not one of webhook_dedup: %s; name another with the subdirective table", s.gate.table, missing)
	}
	return true, nil
}

// shape is every column of the table with its type.
var shape = []string{
	"event_id text", "provider text", "scope text", "environment text", "state text", "attempts integer", "duplicates bigint",
	"event_type text", "status smallint", "first_seen timestamp with time zone", "updated_at timestamp with time zone",
	"keep_until timestamp with time zone", "token uuid", "lease interval", "lease_until timestamp with time zone",
	"payload_hash bytea", "original_id text", "long_key text", "response bytea",
}

// missingColumn names the first column that a table with these does not have. More columns do no harm.
func missingColumn(list string) string {
	have := strings.Split(list, ", ")
	for _, column := range shape {
		if !slices.Contains(have, column) {
			name, kind, _ := strings.Cut(column, " ")
			return fmt.Sprintf("it has no column %s of type %s", name, kind)
		}
	}
	return ""
}
