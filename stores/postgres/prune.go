package postgres

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"
)

const (
	// pruneEvery is how often a node looks for rows whose retention is over.
	pruneEvery = 30 * time.Second
	// pruneBatch is how many of them it deletes in one statement.
	pruneBatch = 500
	// pruneTimeout bounds that statement.
	pruneTimeout = 10 * time.Second
)

// goBackground runs a function whose context ends with the store.
func (s *store) goBackground(run func(context.Context)) {
	s.background.Add(1)
	go func() {
		defer s.background.Done()
		run(s.life)
	}()
}

// pruneForever deletes rows whose retention is over. Of several nodes that do so at the same time one gets the lock, and
// the others find nothing to do.
func (s *store) pruneForever(ctx context.Context, every time.Duration) {
	complained := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(every/2 + rand.N(every)):
		}
		if !s.gate.open.Load() {
			continue
		}
		n, err := s.prune(ctx)
		if err != nil && ctx.Err() == nil && !complained {
			s.log.Warn("deleting expired events in postgres", zap.Error(err)) // once until it works again: a flood helps nobody
			complained = true
		}
		if err == nil {
			complained = false
		}
		if n > 0 {
			s.log.Debug("deleted expired events in postgres", zap.Int64("rows", n))
		}
	}
}

// prune deletes batch after batch, with pauses as long as the batches take, so that half of the time is others'.
func (s *store) prune(ctx context.Context) (total int64, err error) {
	for {
		n, took, err := s.pruneOnce(ctx)
		total += n
		if err != nil || n < pruneBatch {
			return total, err
		}
		select {
		case <-ctx.Done():
			return total, nil
		case <-time.After(took):
		}
	}
}

func (s *store) pruneOnce(ctx context.Context) (int64, time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, pruneTimeout)
	defer cancel()
	start := time.Now()
	var n int64
	err := s.send(func(mode pgx.QueryExecMode) error {
		tag, err := s.pool.Exec(ctx, s.sql.prune, mode, lockNumber("prune", s.gate.table))
		n = tag.RowsAffected()
		return err
	})
	return n, time.Since(start), err
}
