package file

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/bbolt"
	"go.uber.org/zap"
)

const (
	// tickEvery is how often duplicates are written and expired records are looked for.
	tickEvery = time.Second
	// retryAfter is the pace at which a commit is tried again while the disk refuses it.
	retryAfter = 250 * time.Millisecond
	// sweepBatch bounds what one transaction of the sweep looks at.
	sweepBatch = 500
)

// run is the committer: the only goroutine that writes to the file. It returns why the last commit failed, if it did.
func (s *store) run() error {
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.kick:
			s.commit(false)
		case <-tick.C:
			s.commit(true)
			if s.sweep() == sweepBatch {
				tick.Reset(retryAfter) // more is waiting; commits go in between
			} else {
				tick.Reset(tickEvery)
			}
		case <-s.stop:
			return s.commit(true)
		}
		for s.writable() != nil {
			select {
			case <-time.After(retryAfter):
				s.commit(true)
			case <-s.stop:
				return s.commit(true)
			}
		}
	}
}

// write is one record on its way to the file; a value of nil deletes it.
type write struct {
	key     string
	hot     *hot
	value   []byte
	expires int64
}

// commit writes all dirty entries, and the lazy ones if asked, in one transaction.
func (s *store) commit(lazy bool) error {
	s.mu.Lock()
	c, entries := s.next, s.dirty
	s.next, s.dirty = newCommit(), map[string]*hot{}
	if lazy {
		for key, h := range s.lazy {
			entries[key] = h
		}
	}
	s.mu.Unlock()
	defer close(c.done)
	if len(entries) == 0 {
		return nil
	}

	writes := make([]write, 0, len(entries))
	for key, h := range entries {
		st := s.stripe(key)
		st.mu.Lock()
		w := write{key: key, hot: h, expires: h.entry.Expires}
		if h.entry.State != 0 {
			w.value = encode(h.entry, s.owner)
		}
		s.unlazy(key, h)
		st.mu.Unlock()
		writes = append(writes, w)
	}
	slices.SortFunc(writes, func(a, b write) int { return strings.Compare(a.key, b.key) })

	err := s.update(s.db, func(tx *bbolt.Tx) error {
		for _, w := range writes {
			if err := put(tx, w); err != nil {
				return fmt.Errorf("key %q: %w", w.key, err)
			}
		}
		return nil
	})
	if err != nil {
		err = fmt.Errorf("writing the event file %q: %w", s.path, err)
	}
	s.settle(c, err, writes)
	return err
}

// unlazy is called when the duplicates of h are about to be written.
func (s *store) unlazy(key string, h *hot) {
	if h.lazy {
		h.lazy = false
		s.mu.Lock()
		delete(s.lazy, key)
		s.mu.Unlock()
	}
}

// settle forgets what is on disk now, or queues it again.
func (s *store) settle(c *commit, err error, writes []write) {
	for _, w := range writes {
		st := s.stripe(w.key)
		st.mu.Lock()
		switch {
		case err != nil && w.hot.pending == c:
			s.touch(st, w.key, w.hot, w.hot.entry, changed)
		case err != nil && w.hot.pending == nil:
			s.touch(st, w.key, w.hot, w.hot.entry, counted)
		case w.hot.pending == c:
			w.hot.pending = nil
		}
		if w.hot.pending == nil && !w.hot.lazy {
			delete(st.hot, w.key)
		}
		st.mu.Unlock()
	}
	s.mu.Lock()
	was := s.broken
	s.broken, c.err = err, err
	s.mu.Unlock()
	if err != nil && was == nil {
		s.log.Error("the event file cannot be written; claims are refused until it can", zap.String("file", s.path), zap.Error(err))
	} else if err == nil && was != nil {
		s.log.Info("the event file can be written again", zap.String("file", s.path))
	}
}

// put writes one record. The index gets an entry when the record is new, or would be found too late; where the record
// has come to live longer, the sweep moves the entry when it gets there, so that most writes leave the index alone.
func put(tx *bbolt.Tx, w write) error {
	records, index := tx.Bucket(recordBucket), tx.Bucket(expiryBucket)
	key := []byte(w.key)
	at := indexedAt(records.Get(key))
	if at != 0 && (w.value == nil || w.expires < at) {
		if err := index.Delete(indexKey(at, key)); err != nil {
			return err
		}
		at = 0
	}
	if w.value == nil {
		return records.Delete(key)
	}
	if at == 0 {
		at = w.expires
		if err := index.Put(indexKey(at, key), nil); err != nil {
			return err
		}
	}
	setIndexedAt(w.value, at)
	return records.Put(key, w.value)
}

// sweep removes expired records, at most one batch, and returns how many entries of the index it looked at. A record
// whose newer version is still in memory may go, too: that version is written as a whole.
func (s *store) sweep() (looked int) {
	now := s.now().UnixMilli()
	var due [][]byte
	err := s.db.View(func(tx *bbolt.Tx) error {
		cur := tx.Bucket(expiryBucket).Cursor()
		for k, _ := cur.First(); len(k) >= 8 && indexTime(k) <= now && len(due) < sweepBatch; k, _ = cur.Next() {
			due = append(due, slices.Clone(k))
		}
		return nil
	})
	if err == nil && len(due) > 0 {
		err = s.update(s.db, func(tx *bbolt.Tx) error {
			for _, k := range due {
				if err := s.expire(tx, k, now); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err != nil {
		s.log.Warn("expired records were not removed", zap.String("file", s.path), zap.Error(err))
		return 0
	}
	return len(due)
}

func indexTime(k []byte) int64 { return int64(binary.BigEndian.Uint64(k)) }

// expire handles one entry of the index that is due: its record is deleted if it has expired, else looked at again later.
func (s *store) expire(tx *bbolt.Tx, indexed []byte, now int64) error {
	records, index := tx.Bucket(recordBucket), tx.Bucket(expiryBucket)
	if err := index.Delete(indexed); err != nil {
		return err
	}
	key := indexed[8:]
	value := records.Get(key)
	if value == nil || indexedAt(value) != indexTime(indexed) {
		return nil
	}
	e, _, err := decode(value)
	if errors.Is(err, errCorrupt) || e.Expires <= now {
		return records.Delete(key)
	}
	moved := slices.Clone(value)
	setIndexedAt(moved, e.Expires)
	return errors.Join(index.Put(indexKey(e.Expires, key), nil), records.Put(key, moved))
}
