package redis

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
)

// store is the protocol as scripts of one key each, so that the server decides, by its own clock.
type store struct {
	client redis.UniversalClient
	lane   *lane
	// prefix of every key, up to and with the colon behind the version of the scheme.
	prefix   string
	errors   *explainer
	replicas *replicas // nil where nothing waits for them
	adviser  adviser
}

func newStore(client redis.UniversalClient, prefix string) (*store, error) {
	l, err := newLane(client)
	if err != nil {
		return nil, err
	}
	return &store{client: client, lane: l, prefix: prefix + ":" + claim.SchemeVersion + ":", errors: &explainer{}}, nil
}

// run calls a script on one key.
func (s *store) run(ctx context.Context, script *redis.Script, source, key string, args ...any) (any, error) {
	key = s.prefix + key
	v, err := s.lane.do(ctx, key, bySHA(script, key, args)...)
	if isUnknownScript(err) {
		v, err = s.lane.do(ctx, key, bySource(source, key, args)...)
	}
	return v, err
}

// code calls a script that answers with a number.
func (s *store) code(ctx context.Context, script *redis.Script, source, key string, args ...any) (int64, error) {
	return number(s.run(ctx, script, source, key, args...))
}

func number(v any, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	n, ok := v.(int64)
	if !ok {
		return 0, errStrange
	}
	return n, nil
}

// Claim implements [claim.Store].
func (s *store) Claim(ctx context.Context, c claim.Claim) (claim.ClaimOutcome, claim.Record, error) {
	if err := c.Check(); err != nil {
		return 0, claim.Record{}, err
	}
	v, err := s.run(ctx, claimScript, claimSource, c.Key,
		c.Token[:], c.Lease.Milliseconds(), c.Keep.Milliseconds(), c.EventType, digest(c.BodySHA256), c.OriginalID)
	if err == nil {
		var outcome int64
		var r claim.Record
		if outcome, r, err = decode(c.Key, v); err == nil && outcome >= int64(claim.Granted) && outcome <= int64(claim.Refused) {
			return claim.ClaimOutcome(outcome), r, nil
		} else if err == nil {
			err = errStrange
		}
	}
	return 0, claim.Record{}, s.errors.wrap("claiming in redis", err)
}

// Renew implements [claim.Store].
func (s *store) Renew(ctx context.Context, r claim.Renewal) error {
	if err := r.Check(); err != nil {
		return err
	}
	n, err := s.code(ctx, renewScript, renewSource, r.Key, r.Token[:], r.Lease.Milliseconds(), r.Keep.Milliseconds())
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
	return s.errors.wrap("renewing a lease in redis", err)
}

// Complete implements [claim.Store].
func (s *store) Complete(ctx context.Context, c claim.Completion) (claim.CompleteOutcome, error) {
	if err := c.Check(); err != nil {
		return 0, err
	}
	response := c.Response
	if response == nil {
		response = []byte{}
	}
	n, err := s.complete(ctx, c.Key,
		c.Token[:], c.TTL.Milliseconds(), c.Status, response, c.EventType, digest(c.BodySHA256), c.OriginalID)
	if err == nil {
		switch {
		case n >= int64(claim.Written) && n <= int64(claim.WrittenAnew):
			return claim.CompleteOutcome(n), nil
		case n == 0:
			return 0, claim.ErrLeaseLost
		case n == -1:
			return 0, claim.ErrProcessedByOther
		}
		err = errStrange
	}
	return 0, s.errors.wrap("completing in redis", err)
}

// Release implements [claim.Store].
func (s *store) Release(ctx context.Context, r claim.Release) (claim.ReleaseOutcome, error) {
	if err := r.Check(); err != nil {
		return 0, err
	}
	n, err := s.code(ctx, releaseScript, releaseSource, r.Key, r.Token[:], r.Keep.Milliseconds(), r.Status)
	if err == nil {
		switch {
		case n >= int64(claim.Released) && n <= int64(claim.Voided):
			return claim.ReleaseOutcome(n), nil
		case n == 0:
			return 0, claim.ErrLeaseLost
		case n == -1:
			return 0, claim.ErrProcessedBySelf
		}
		err = errStrange
	}
	return 0, s.errors.wrap("releasing in redis", err)
}

// Get implements [claim.Store].
func (s *store) Get(ctx context.Context, key string) (claim.Record, error) {
	if err := claim.CheckKey(key); err != nil {
		return claim.Record{}, err
	}
	v, err := s.run(ctx, getScript, getSource, key)
	var r claim.Record
	if err == nil {
		_, r, err = decode(key, v)
	}
	if err != nil {
		return claim.Record{}, s.errors.wrap("reading from redis", err)
	}
	if r.State == 0 {
		return claim.Record{}, claim.ErrNotFound
	}
	return r, nil
}

// Forget implements [claim.Store].
func (s *store) Forget(ctx context.Context, key string) (bool, error) {
	if err := claim.CheckKey(key); err != nil {
		return false, err
	}
	n, err := number(s.lane.do(ctx, s.prefix+key, "del", s.prefix+key))
	if err != nil {
		return false, s.errors.wrap("forgetting in redis", err)
	}
	return n > 0, nil
}

// Ping implements [claim.Store]. In a cluster every master answers, or it fails.
func (s *store) Ping(ctx context.Context) error {
	err := ctx.Err()
	if err == nil && s.lane.cluster != nil {
		err = s.lane.cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error { return node.Ping(ctx).Err() })
	} else if err == nil {
		_, err = s.lane.do(ctx, "", "ping")
	}
	if err != nil {
		return s.errors.wrap("asking redis for a sign of life", err)
	}
	return nil
}

// Close implements [claim.Store].
func (s *store) Close() error {
	s.adviser.stop()
	err := s.lane.close()
	s.adviser.wait()
	if err != nil {
		return s.errors.wrap("closing redis", err)
	}
	return nil
}

// digest is empty where there is none.
func digest(sum [32]byte) []byte {
	if sum == [32]byte{} {
		return []byte{}
	}
	return sum[:]
}

// errStrange is an answer that no script of this package gives, as when a key is written by somebody else.
var errStrange = errors.New("the server's answer makes no sense")

// decode reads the answer of claim.lua and get.lua.
func decode(key string, answer any) (outcome int64, r claim.Record, err error) {
	fields, ok := answer.([]any)
	if !ok || len(fields) != 14 {
		return 0, r, errStrange
	}
	field := func(i int) (n int64) {
		switch v := fields[i].(type) {
		case int64:
			return v
		case string:
			var wrong error
			if n, wrong = strconv.ParseInt(v, 10, 64); wrong != nil {
				err = errStrange
			}
		}
		return n
	}
	text := func(i int) string {
		s, _ := fields[i].(string)
		return s
	}
	outcome = field(0)
	r = claim.Record{Key: key, State: claim.State(field(2))}
	if r.State == 0 {
		return outcome, r, err
	}
	r.Remaining = time.Duration(field(1)) * time.Millisecond
	if r.State == claim.Processing {
		r.Lease = time.Duration(field(4)) * time.Millisecond
	}
	r.FirstSeen, r.Updated = time.UnixMilli(field(5)), time.UnixMilli(field(6))
	r.Attempts, r.Duplicates = int(field(7)), field(8)
	r.EventType, r.Status = text(9), int(field(10))
	r.OriginalID = text(13)
	if b := text(12); b != "" {
		r.Response = []byte(b)
	}
	if copy(r.Token[:], text(3)) != len(r.Token) || r.State > claim.Failed {
		err = errStrange
	}
	copy(r.BodySHA256[:], text(11))
	return outcome, r, err
}

var _ claim.Store = (*store)(nil)
