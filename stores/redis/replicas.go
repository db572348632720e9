package redis

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"
)

// ReplicationCounter is implemented by every store that this package opens.
type ReplicationCounter interface {
	// Unreplicated counts the completions that the wished number of replicas did not confirm in time. It stays zero
	// without `replicas`.
	Unreplicated() uint64
}

const (
	// waitingMax bounds the completions that wait for replicas, each on a connection of its own. Those beyond it do not
	// wait, so that slow replicas do not become slow or failing completions.
	waitingMax = 48
	// poolWithReplicas leaves room for everything else.
	poolWithReplicas = waitingMax + 16
	// maxSteps bounds how often a completion is sent to where, or as what, the answer says that it was not carried out.
	maxSteps = 4
	// warnEvery bounds how often a store says that replicas lag.
	warnEvery = time.Minute
)

// replicas makes completions wait until so many replicas have them.
type replicas struct {
	count   int
	timeout time.Duration
	slots   chan struct{}
	log     *zap.Logger

	missed atomic.Uint64
	mu     sync.Mutex
	warned time.Time
}

func newReplicas(count int, timeout time.Duration, log *zap.Logger) *replicas {
	return &replicas{count: count, timeout: timeout, slots: make(chan struct{}, waitingMax), log: log}
}

// Unreplicated implements [ReplicationCounter].
func (s *store) Unreplicated() uint64 {
	if s.replicas == nil {
		return 0
	}
	return s.replicas.missed.Load()
}

// complete calls complete.lua, and waits for replicas where that is configured. WAIT blocks its connection and counts
// what was written on it, so both go out together on a connection taken from the pool; in the pipeline it would hold up the
// operations of others. What WAIT says, or that it fails, never changes the answer.
func (s *store) complete(ctx context.Context, key string, args ...any) (int64, error) {
	if s.replicas == nil {
		return s.code(ctx, completeScript, completeSource, key, args...)
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	select {
	case s.replicas.slots <- struct{}{}:
		defer func() { <-s.replicas.slots }()
	default:
		n, err := s.code(ctx, completeScript, completeSource, key, args...)
		s.replicas.miss(err, "too many completions wait already")
		return n, err
	}
	node, err := s.lane.master(ctx, s.prefix+key)
	if err != nil {
		return 0, err
	}
	var v any
	var unconfirmed error
	asking, call := false, bySHA(completeScript, s.prefix+key, args)
	for range maxSteps {
		v, unconfirmed, err = s.replicas.send(ctx, node, asking, call)
		if isUnknownScript(err) {
			call = bySource(completeSource, s.prefix+key, args)
		} else if s.lane.cluster == nil || !isRedirection(err) {
			break
		} else if node, asking = s.lane.follow(ctx, err); node == nil {
			break
		}
	}
	if s.lane.cluster != nil && isRedirection(err) { // to where this process has no connection yet
		n, err := s.code(ctx, completeScript, completeSource, key, args...)
		s.replicas.miss(err, "the key's slot is being moved")
		return n, err
	}
	if err != nil {
		s.lane.suspect(err)
		return 0, err
	}
	if unconfirmed != nil {
		s.replicas.miss(nil, unconfirmed.Error())
	}
	return number(v, nil)
}

// send calls the script and waits, in one round trip. It tells the script's own error from that of the waiting.
func (r *replicas) send(ctx context.Context, node *redis.Client, asking bool, args []any) (v any, unconfirmed, err error) {
	timeout := r.timeout
	if deadline, ok := ctx.Deadline(); ok {
		timeout = min(timeout, time.Until(deadline)*4/5) // the answer must be back in time
	}
	conn := node.Conn()
	defer conn.Close()
	cmd := redis.NewCmd(ctx, args...)
	wait := redis.NewIntCmd(ctx, "wait", r.count, max(timeout.Milliseconds(), 1)) // 0 would be for ever
	_, err = conn.Pipelined(ctx, func(p redis.Pipeliner) error {
		if asking {
			p.Do(ctx, "asking")
		}
		return errors.Join(p.Process(ctx, cmd), p.Process(ctx, wait))
	})
	if v, ok := answered(cmd, err); ok { // the script was, WAIT was not
		return v, err, nil
	}
	if err := cmd.Err(); err != nil {
		return nil, nil, err
	}
	if wait.Err() == nil && wait.Val() < int64(r.count) {
		return cmd.Val(), errBehind, nil
	}
	return cmd.Val(), wait.Err(), nil
}

// miss counts a completion that was written and not confirmed by the replicas.
func (r *replicas) miss(err error, reason string) {
	if err != nil {
		return // it was not written, as far as is known
	}
	total := r.missed.Add(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.warned) < warnEvery {
		return
	}
	r.warned = time.Now()
	r.log.Warn("a completion was not confirmed by the replicas in time: a failover now would forget it, and the event would be processed again",
		zap.Int("replicas", r.count), zap.Duration("timeout", r.timeout), zap.String("reason", reason), zap.Uint64("total", total))
}
