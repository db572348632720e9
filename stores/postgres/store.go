package postgres

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/zap"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
)

// store is the protocol as one statement for each step, so that the server decides, by its own clock.
type store struct {
	pool *pgxpool.Pool
	sql  *statements
	gate gate
	log  *zap.Logger

	// mode is how statements are sent: prepared once for each connection, unless the DSN says otherwise or unprepared is set.
	mode       pgx.QueryExecMode
	unprepared atomic.Bool

	// What runs in the background ends with its life.
	life       context.Context
	stop       context.CancelFunc
	background sync.WaitGroup
}

func open(pool *pgxpool.Pool, table string, create bool, prune time.Duration, logger *zap.Logger) *store {
	s := &store{pool: pool, mode: pool.Config().ConnConfig.DefaultQueryExecMode, sql: compile(table), gate: gate{table: table, create: create}, log: logger}
	s.life, s.stop = context.WithCancel(context.Background())
	s.goBackground(func(ctx context.Context) { s.pruneForever(ctx, prune) })
	return s
}

// maxTries bounds how often a statement that did nothing is sent. Each time, another one has changed the row.
const maxTries = 100

// step sends a statement about one row, which answers with a row of its own. Without one it has done nothing: the row
// changed between the look at it and the writing.
func (s *store) step(ctx context.Context, sql string, args []any, targets ...any) error {
	if err := s.prepared(ctx); err != nil {
		return err
	}
	return s.send(func(mode pgx.QueryExecMode) error {
		return s.pool.QueryRow(ctx, sql, append([]any{mode}, args...)...).Scan(targets...)
	})
}

// send calls do, which sends a statement in this mode, until the statement has been carried out or has failed. It is
// called again only where the server has said that nothing was done.
func (s *store) send(do func(pgx.QueryExecMode) error) error {
	for range maxTries {
		mode := s.mode
		if s.unprepared.Load() {
			mode = pgx.QueryExecModeExec
		}
		err := do(mode)
		switch code := sqlState(err); {
		case errors.Is(err, pgx.ErrNoRows) || isConflict(err):
		case (code == "26000" || code == "42P05") && mode != pgx.QueryExecModeExec:
			// The statement was prepared on another connection than this one, or this one has it from somebody else: a
			// PgBouncer in transaction mode that does not keep track of them.
			if !s.unprepared.Swap(true) {
				s.log.Info("statements are not prepared from now on, since a pooler between here and postgres loses them; " +
					"PgBouncer 1.21 and later keep them with max_prepared_statements")
			}
		default:
			return s.explain(err)
		}
	}
	return errors.New("the row is there and cannot be seen; does the table have row security?")
}

// isConflict reports whether the server gave up a statement because of another one. That is how a row which has changed
// shows where the isolation is stricter than "read committed".
func isConflict(err error) bool {
	code := sqlState(err)
	return code == "40001" || code == "40P01"
}

func sqlState(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// Claim implements [claim.Store].
func (s *store) Claim(ctx context.Context, c claim.Claim) (claim.ClaimOutcome, claim.Record, error) {
	if err := c.Check(); err != nil {
		return 0, claim.Record{}, err
	}
	row, long, err := locate(c.Key)
	if err != nil {
		return 0, claim.Record{}, err
	}
	args := row.args(long, token(c.Token), c.Lease.Milliseconds(), c.Keep.Milliseconds(),
		textOrNull(c.EventType), digestOrNull(c.BodySHA256), textOrNull(c.OriginalID), true)
	var outcome claim.ClaimOutcome
	var r scanner
	if err = s.prepared(ctx); err == nil {
		err = s.send(func(mode pgx.QueryExecMode) error {
			err := s.pool.QueryRow(ctx, s.sql.claim, append([]any{mode}, args...)...).Scan(append([]any{&outcome}, r.targets()...)...)
			if isConflict(err) {
				args[len(args)-1] = false // what was in the way may be the counting of another duplicate
			}
			return err
		})
	}
	if cannotWrite(err) {
		// A server that is full or read-only cannot count, and answers the duplicate all the same.
		if kept, e := s.read(ctx, c.Key, row); e == nil && kept.State == claim.Processed {
			if kept.Token == c.Token {
				return claim.ProcessedBySelf, kept, nil
			}
			return claim.Duplicate, kept, nil
		}
	}
	if err != nil {
		return 0, claim.Record{}, fmt.Errorf("claiming in postgres: %w", err)
	}
	record, err := r.record(c.Key)
	if err != nil {
		return 0, claim.Record{}, fmt.Errorf("claiming in postgres: %w", err)
	}
	return outcome, record, nil
}

// cannotWrite reports whether the server is read-only or has no room, in which case it has done nothing.
func cannotWrite(err error) bool {
	code := sqlState(err)
	return code == "25006" || code == "53100"
}

// Renew implements [claim.Store].
func (s *store) Renew(ctx context.Context, r claim.Renewal) error {
	if err := r.Check(); err != nil {
		return err
	}
	row, long, err := locate(r.Key)
	if err != nil {
		return err
	}
	var n int
	err = s.step(ctx, s.sql.renew, row.args(long, token(r.Token), r.Lease.Milliseconds(), r.Keep.Milliseconds()), &n)
	if err == nil {
		switch n {
		case 1:
			return nil
		case 0:
			return claim.ErrLeaseLost
		case -1:
			return claim.ErrProcessedBySelf
		}
		err = errStrange
	}
	return fmt.Errorf("renewing a lease in postgres: %w", err)
}

// Complete implements [claim.Store].
func (s *store) Complete(ctx context.Context, c claim.Completion) (claim.CompleteOutcome, error) {
	if err := c.Check(); err != nil {
		return 0, err
	}
	row, long, err := locate(c.Key)
	if err != nil {
		return 0, err
	}
	var response any
	if len(c.Response) > 0 {
		response = c.Response
	}
	var n int
	err = s.step(ctx, s.sql.complete, row.args(long, token(c.Token), c.TTL.Milliseconds(), status(c.Status), response,
		textOrNull(c.EventType), digestOrNull(c.BodySHA256), textOrNull(c.OriginalID)), &n)
	if err == nil {
		switch {
		case n >= int(claim.Written) && n <= int(claim.WrittenAnew):
			return claim.CompleteOutcome(n), nil
		case n == 0:
			return 0, claim.ErrLeaseLost
		case n == -1:
			return 0, claim.ErrProcessedByOther
		}
		err = errStrange
	}
	return 0, fmt.Errorf("completing in postgres: %w", err)
}

// Release implements [claim.Store].
func (s *store) Release(ctx context.Context, r claim.Release) (claim.ReleaseOutcome, error) {
	if err := r.Check(); err != nil {
		return 0, err
	}
	row, long, err := locate(r.Key)
	if err != nil {
		return 0, err
	}
	var n int
	err = s.step(ctx, s.sql.release, row.args(long, token(r.Token), r.Keep.Milliseconds(), status(r.Status)), &n)
	if err == nil {
		switch {
		case n >= int(claim.Released) && n <= int(claim.Voided):
			return claim.ReleaseOutcome(n), nil
		case n == 0:
			return 0, claim.ErrLeaseLost
		case n == -1:
			return 0, claim.ErrProcessedBySelf
		}
		err = errStrange
	}
	return 0, fmt.Errorf("releasing in postgres: %w", err)
}

// Get implements [claim.Store].
func (s *store) Get(ctx context.Context, key string) (claim.Record, error) {
	row, _, err := locate(key)
	if err != nil {
		return claim.Record{}, err
	}
	if err := s.prepared(ctx); err != nil {
		return claim.Record{}, fmt.Errorf("reading from postgres: %w", err)
	}
	r, err := s.read(ctx, key, row)
	if err != nil && !errors.Is(err, claim.ErrNotFound) {
		return claim.Record{}, fmt.Errorf("reading from postgres: %w", err)
	}
	return r, err
}

func (s *store) read(ctx context.Context, key string, row position) (record claim.Record, err error) {
	err = s.send(func(mode pgx.QueryExecMode) error {
		var r scanner
		err := s.pool.QueryRow(ctx, s.sql.get, append([]any{mode}, row.args()...)...).Scan(r.targets()...)
		if errors.Is(err, pgx.ErrNoRows) {
			return claim.ErrNotFound
		} else if err != nil {
			return err
		}
		record, err = r.record(key)
		return err
	})
	return record, err
}

// Forget implements [claim.Store].
func (s *store) Forget(ctx context.Context, key string) (bool, error) {
	row, _, err := locate(key)
	if err != nil {
		return false, err
	}
	var found bool
	if err := s.step(ctx, s.sql.forget, row.args(), &found); err != nil {
		return false, fmt.Errorf("forgetting in postgres: %w", err)
	}
	return found, nil
}

// Ping implements [claim.Store].
func (s *store) Ping(ctx context.Context) error {
	err := s.prepared(ctx)
	if err == nil {
		err = s.pool.Ping(ctx)
	}
	if err != nil {
		return fmt.Errorf("asking postgres for a sign of life: %w", err)
	}
	return nil
}

// Close implements [claim.Store].
func (s *store) Close() error {
	s.stop()
	s.background.Wait()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		s.pool.Close()
	}()
	select {
	case <-closed:
		return nil
	case <-time.After(closeTimeout):
		return errors.New("closing postgres: the server does not answer; its connections are dropped soon")
	}
}

// closeTimeout bounds the farewell to a server that does not answer. What is left ends by itself, within 15 seconds.
const closeTimeout = 3 * time.Second

func token(t claim.Token) string { return hex.EncodeToString(t[:]) }

// status is null where there was none.
func status(n int) any {
	if n == 0 {
		return nil
	}
	return int64(n)
}

// errStrange is an answer that no statement of this package gives, as when a row is written by somebody else.
var errStrange = errors.New("the row is not one of webhook_dedup")

// scanner takes in a record as recordColumns name it.
type scanner struct {
	state                 *string
	token                 *[16]byte
	lease, remaining      *int64
	firstSeen, updated    *int64
	attempts, duplicates  *int64
	eventType, originalID *string
	status                *int64
	digest, response      []byte
}

func (r *scanner) targets() []any {
	return []any{
		&r.state, &r.token, &r.lease, &r.remaining, &r.firstSeen, &r.updated, &r.attempts, &r.duplicates, &r.eventType, &r.status,
		&r.digest, &r.originalID, &r.response,
	}
}

func (r *scanner) record(key string) (claim.Record, error) {
	if r.state == nil || r.token == nil || r.firstSeen == nil || r.updated == nil || len(r.digest) != 0 && len(r.digest) != 32 {
		return claim.Record{}, errStrange
	}
	state, err := claim.ParseState(*r.state)
	if err != nil {
		return claim.Record{}, errStrange
	}
	out := claim.Record{
		Key:        key,
		State:      state,
		Token:      *r.token,
		FirstSeen:  time.UnixMilli(*r.firstSeen),
		Updated:    time.UnixMilli(*r.updated),
		Attempts:   int(or(r.attempts)),
		Duplicates: or(r.duplicates),
		EventType:  fromText(or(r.eventType)),
		Status:     int(or(r.status)),
		OriginalID: fromText(or(r.originalID)),
	}
	copy(out.BodySHA256[:], r.digest)
	if len(r.response) > 0 {
		out.Response = r.response
	}
	if state == claim.Processing {
		out.Lease = time.Duration(or(r.lease)) * time.Millisecond
		out.Remaining = time.Duration(max(0, or(r.remaining))) * time.Millisecond
	}
	return out, nil
}

// or is the value of a column, or zero where it is null.
func or[T any](v *T) (zero T) {
	if v == nil {
		return zero
	}
	return *v
}
