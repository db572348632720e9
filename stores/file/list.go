package file

import (
	"context"
	"maps"
	"slices"
	"strings"

	"go.etcd.io/bbolt"
	"go.uber.org/zap"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
)

// viewBatch bounds what one read transaction looks at, since the file cannot reuse pages that a transaction sees.
const viewBatch = 2000

// List implements [claim.Store]. Records come in the order of their keys.
func (s *store) List(ctx context.Context, q claim.Query) (claim.Page, error) {
	after, err := claim.DecodeCursor(q.Cursor)
	if err := refused(ctx, err); err != nil {
		return claim.Page{}, err
	}
	records, end, err := s.scan(after, q.Prefix)
	if err != nil {
		return claim.Page{}, err
	}
	p := claim.Page{Cursor: claim.EncodeCursor(end)}
	limit := q.Bounded().Limit
	for _, r := range records {
		if len(p.Records) == limit {
			p.Cursor = claim.EncodeCursor(p.Records[limit-1].Key)
			break
		}
		if q.Matches(r) {
			p.Records = append(p.Records, r)
		}
	}
	return p, nil
}

// Stats implements [claim.Store].
func (s *store) Stats(ctx context.Context) (stats claim.Stats, err error) {
	for after := ""; ; {
		if err := ctx.Err(); err != nil {
			return claim.Stats{}, err
		}
		records, end, err := s.scan(after, "")
		if err != nil {
			return claim.Stats{}, err
		}
		for _, r := range records {
			stats.Count(r)
		}
		if after = end; end == "" {
			return stats, nil
		}
	}
}

// scan returns the next records after a key, in order, and the last key that was looked at, empty if that was the last
// of all. What is in memory is collected before the file is read, so that a record on its way from there is not missed.
func (s *store) scan(after, prefix string) (records []claim.Record, end string, err error) {
	entries := map[string]claim.Entry{}
	for i := range s.stripes {
		st := &s.stripes[i]
		st.mu.Lock()
		for key, h := range st.hot {
			if key > after && strings.HasPrefix(key, prefix) {
				entries[key] = h.entry
			}
		}
		st.mu.Unlock()
	}
	err = s.db.View(func(tx *bbolt.Tx) error {
		cur := tx.Bucket(recordBucket).Cursor()
		looked := 0
		for k, v := cur.Seek([]byte(max(after, prefix))); k != nil && strings.HasPrefix(string(k), prefix); k, v = cur.Next() {
			key := string(k)
			if key <= after {
				continue
			}
			if _, newer := entries[key]; !newer {
				e, err := s.decode(k, v)
				if err != nil {
					s.log.Error("a record is left out", zap.Error(err)) // the others are wanted all the same
				} else {
					entries[key] = e
				}
			}
			if looked++; looked == viewBatch {
				end = key
				break
			}
		}
		return nil
	})
	if err != nil {
		return nil, "", err
	}
	now := s.now()
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		if end != "" && key > end {
			break
		}
		if r := entries[key].Record(key, now); r.State != 0 {
			records = append(records, r)
		}
	}
	return records, end, nil
}
