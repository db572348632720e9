package file

import (
	"encoding/binary"
	"errors"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
)

// A record on disk: version (1 byte), time of its entry in the expiry index (8), state (1), token (16), owner (16), then
// varints (lease, deadline, expires, first seen, updated, attempts, duplicates, status), then four byte strings, each
// behind its length: event type, digest (empty if there is none), response, original ID.
const (
	recordVersion = 1
	headerLength  = 1 + 8 + 1 + 16 + 16
)

var errCorrupt = errors.New("the record is corrupt")

// owner names a process: a claim that another process wrote is over, since the lock on the file proves it dead.
type owner [16]byte

// encode leaves the time in the index at zero: it is only known when the record is written.
func encode(e claim.Entry, by owner) []byte {
	b := make([]byte, 0, headerLength+8*binary.MaxVarintLen64/2+len(e.EventType)+len(e.BodySHA256)+len(e.Response)+len(e.OriginalID))
	b = append(b, recordVersion)
	b = append(b, make([]byte, 8)...)
	b = append(b, byte(e.State))
	b = append(b, e.Token[:]...)
	b = append(b, by[:]...)
	for _, n := range []int64{e.Lease, e.Deadline, e.Expires, e.FirstSeen, e.Updated, int64(e.Attempts), e.Duplicates, int64(e.Status)} {
		b = binary.AppendVarint(b, n)
	}
	sum := e.BodySHA256[:]
	if e.BodySHA256 == [32]byte{} {
		sum = nil
	}
	for _, s := range [][]byte{[]byte(e.EventType), sum, e.Response, []byte(e.OriginalID)} {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	return b
}

// decode copies everything that it returns.
func decode(b []byte) (e claim.Entry, by owner, err error) {
	if len(b) < headerLength || b[0] != recordVersion {
		return e, by, errCorrupt
	}
	e.State = claim.State(b[9])
	if e.State < claim.Processing || e.State > claim.Failed {
		return claim.Entry{}, by, errCorrupt
	}
	copy(e.Token[:], b[10:])
	copy(by[:], b[26:])
	b = b[headerLength:]
	var attempts, status int64
	for _, n := range []*int64{&e.Lease, &e.Deadline, &e.Expires, &e.FirstSeen, &e.Updated, &attempts, &e.Duplicates, &status} {
		v, width := binary.Varint(b)
		if width <= 0 {
			return claim.Entry{}, by, errCorrupt
		}
		*n, b = v, b[width:]
	}
	e.Attempts, e.Status = int(attempts), int(status)
	var parts [4][]byte
	for i := range parts {
		n, width := binary.Uvarint(b)
		if width <= 0 || n > uint64(len(b)-width) {
			return claim.Entry{}, by, errCorrupt
		}
		parts[i], b = b[width:width+int(n)], b[width+int(n):]
	}
	if len(b) != 0 || len(parts[1]) != 0 && len(parts[1]) != len(e.BodySHA256) {
		return claim.Entry{}, by, errCorrupt
	}
	e.EventType, e.OriginalID = string(parts[0]), string(parts[3])
	copy(e.BodySHA256[:], parts[1])
	if len(parts[2]) > 0 {
		e.Response = append([]byte(nil), parts[2]...)
	}
	return e, by, nil
}

// indexedAt is when the index looks at an encoded record, zero if it cannot be told.
func indexedAt(b []byte) int64 {
	if len(b) < headerLength || b[0] != recordVersion {
		return 0
	}
	return int64(binary.BigEndian.Uint64(b[1:9]))
}

func setIndexedAt(b []byte, at int64) { binary.BigEndian.PutUint64(b[1:9], uint64(at)) }

// indexKey orders the index by time.
func indexKey(at int64, key []byte) []byte {
	return append(binary.BigEndian.AppendUint64(make([]byte, 0, 8+len(key)), uint64(at)), key...)
}
