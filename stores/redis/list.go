package redis

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
)

const (
	// scanMin and scanMax bound the COUNT of one SCAN, so that none holds the server up.
	scanMin, scanMax = 10, 1000
	// maxScans bounds the calls of one List; the next page goes on.
	maxScans = 100
	// readBatch bounds the records that one round trip brings, since each may hold a response.
	readBatch = 100
)

// position is where a List goes on: keys that an earlier SCAN found and that did not fit on the page, then the next SCAN.
type position struct {
	Keys   [][]byte `json:"k,omitempty"`
	Cursor uint64   `json:"c,omitempty"`
	// Node is the master that is being scanned, in a cluster; they come in the order of their addresses.
	Node string `json:"n,omitempty"`
}

// errReshaped ends a List that cannot go on: a cursor of SCAN means nothing to another server.
var errReshaped = errors.New("the cluster has changed meanwhile; list from the beginning")

// List implements [claim.Store] by SCAN, in no order. What a cluster moves from one master to another in the meantime may
// be missed or returned twice.
func (s *store) List(ctx context.Context, q claim.Query) (p claim.Page, err error) {
	if err := ctx.Err(); err != nil {
		return p, err
	}
	var pos position
	if q.Cursor != "" {
		text, err := claim.DecodeCursor(q.Cursor)
		if err != nil {
			return p, err
		}
		if err := json.Unmarshal([]byte(text), &pos); err != nil || pos.Cursor == 0 && len(pos.Keys) == 0 && pos.Node == "" {
			return p, fmt.Errorf("%w: the cursor is not one that this store gave out", claim.ErrArgument)
		}
	}
	keys := make([]string, 0, len(pos.Keys))
	for _, k := range pos.Keys {
		keys = append(keys, string(k))
	}
	nodes, err := s.lane.masters(ctx)
	if err != nil {
		return p, s.errors.wrap("listing redis", err)
	}
	at := 0
	if pos.Node != "" {
		if at = slices.IndexFunc(nodes, func(n *redis.Client) bool { return n.Options().Addr == pos.Node }); at < 0 {
			return p, fmt.Errorf("listing redis: %w", errReshaped)
		}
	}
	limit, more := q.Bounded().Limit, q.Cursor == "" || pos.Cursor != 0 || pos.Node != ""
	count := scanMin
	for scans := 0; ; {
		for len(keys) > 0 && len(p.Records) < limit {
			n := min(len(keys), limit-len(p.Records), readBatch)
			records, err := s.read(ctx, keys[:n])
			if err != nil {
				return claim.Page{}, s.errors.wrap("listing redis", err)
			}
			for _, r := range records {
				if r.State != 0 && q.Matches(r) {
					p.Records = append(p.Records, r)
				}
			}
			keys = keys[n:]
		}
		if len(p.Records) == limit || !more || scans == maxScans {
			break
		}
		room := limit - len(p.Records)
		found, next, err := s.scan(ctx, nodes[at], pos.Cursor, q, count)
		if scans++; err == nil && len(found) > room+scanMax/10 && count > max(room, scanMin) {
			// Far more than fits: the step is taken again as a smaller one, since what is left over goes into the cursor.
			count = max(room, scanMin)
			found, next, err = s.scan(ctx, nodes[at], pos.Cursor, q, count)
		}
		if err != nil {
			return claim.Page{}, s.errors.wrap("listing redis", err)
		}
		if count = min(max(room, scanMin), scanMax); len(found) == 0 {
			count = scanMax // barren land is crossed in great steps
		}
		keys, pos.Cursor = found, next
		if more = next != 0; !more && at+1 < len(nodes) {
			at, more = at+1, true
		}
	}
	if pos.Node = ""; more && s.lane.cluster != nil {
		pos.Node = nodes[at].Options().Addr
	}
	if pos.Keys = nil; len(keys) > 0 || more {
		for _, k := range keys {
			pos.Keys = append(pos.Keys, []byte(k))
		}
		text, err := json.Marshal(pos)
		if err != nil {
			return claim.Page{}, s.errors.wrap("listing redis", err)
		}
		p.Cursor = claim.EncodeCursor(string(text))
	}
	return p, nil
}

// scan takes one step and returns the keys that q may select, without the store's prefix.
func (s *store) scan(ctx context.Context, node *redis.Client, cursor uint64, q claim.Query, count int) (keys []string, next uint64, err error) {
	pattern := escape(s.prefix+q.Prefix) + "*"
	if q.Prefix == "" && q.EventID != "" {
		pattern += escape(":" + q.EventID)
	}
	found, next, err := node.Scan(ctx, cursor, pattern, int64(count)).Result()
	for _, k := range found {
		if k = strings.TrimPrefix(k, s.prefix); q.Matches(claim.Record{Key: k, State: q.State}) {
			keys = append(keys, k)
		}
	}
	return keys, next, err
}

// escape makes a literal of s in a pattern of Redis.
func escape(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(s)
}

// read returns the records of keys, with the zero State where there is none.
func (s *store) read(ctx context.Context, keys []string) ([]claim.Record, error) {
	cmds := make([]*redis.Cmd, len(keys))
	for i, key := range keys {
		cmds[i] = redis.NewCmd(ctx, bySHA(getScript, s.prefix+key, nil)...)
	}
	if err := s.pipeline(ctx, cmds); isUnknownScript(err) {
		for i, key := range keys {
			cmds[i] = redis.NewCmd(ctx, bySource(getSource, s.prefix+key, nil)...)
		}
		if err := s.pipeline(ctx, cmds); err != nil {
			return nil, err
		}
	} else if err != nil {
		return nil, err
	}
	records := make([]claim.Record, len(keys))
	for i, key := range keys {
		var err error
		if _, records[i], err = decode(key, cmds[i].Val()); err != nil {
			return nil, fmt.Errorf("key %q: %w", key, err)
		}
	}
	return records, nil
}

// pipeline sends cmds in one round trip and returns the first error.
func (s *store) pipeline(ctx context.Context, cmds []*redis.Cmd) error {
	_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		var errs error
		for _, cmd := range cmds {
			errs = errors.Join(errs, p.Process(ctx, cmd))
		}
		return errs
	})
	return err
}

// Stats implements [claim.Store]. It reads every key of the store, a batch at a time.
func (s *store) Stats(ctx context.Context) (stats claim.Stats, err error) {
	if err := ctx.Err(); err != nil {
		return stats, err
	}
	nodes, err := s.lane.masters(ctx)
	if err != nil {
		return stats, s.errors.wrap("counting in redis", err)
	}
	seed, seen := maphash.MakeSeed(), map[uint64]struct{}{} // SCAN may return a key more than once
	for _, node := range nodes {
		for cursor := uint64(0); ; {
			keys, next, err := s.scan(ctx, node, cursor, claim.Query{}, scanMax)
			if err != nil {
				return claim.Stats{}, s.errors.wrap("counting in redis", err)
			}
			keys = slices.DeleteFunc(keys, func(key string) bool {
				h := maphash.String(seed, key)
				_, twice := seen[h]
				seen[h] = struct{}{}
				return twice
			})
			if err := s.count(ctx, keys, &stats); err != nil {
				return claim.Stats{}, s.errors.wrap("counting in redis", err)
			}
			if cursor = next; next == 0 {
				break
			}
		}
	}
	return stats, nil
}

// count adds the records of keys to stats.
func (s *store) count(ctx context.Context, keys []string, stats *claim.Stats) error {
	if len(keys) == 0 {
		return nil
	}
	cmds := make([]*redis.Cmd, len(keys))
	for i, key := range keys {
		cmds[i] = redis.NewCmd(ctx, "hmget", s.prefix+key, "s", "m")
	}
	if err := s.pipeline(ctx, cmds); err != nil {
		return err
	}
	for i, key := range keys {
		if fields, ok := cmds[i].Val().([]any); ok && len(fields) == 2 && fields[0] != nil {
			stats.Count(claim.Record{Key: key, State: claim.State(integer(fields[0])), Updated: time.UnixMilli(integer(fields[1]))})
		}
	}
	return nil
}

func integer(v any) int64 {
	s, _ := v.(string)
	n, _ := strconv.ParseInt(s, 10, 64)
	return n
}
