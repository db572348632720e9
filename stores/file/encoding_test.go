package file

import (
	"reflect"
	"testing"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
)

var samples = []claim.Entry{
	{State: claim.Failed},
	{
		State: claim.Processed, Token: claim.Token{1, 2}, Expires: 1_800_000_000_000, FirstSeen: 1, Updated: -1, Attempts: 3,
		Duplicates: 1 << 40, EventType: "charge.paid", Status: 200, BodySHA256: [32]byte{31: 1}, Response: []byte("\x00answer"),
	},
	{State: claim.Processing, Lease: 30_000, Deadline: 1_800_000_000_000, Expires: 1_900_000_000_000, Attempts: 1},
}

func TestEncodingRoundTrip(t *testing.T) {
	for _, e := range samples {
		b := encode(e, owner{7})
		setIndexedAt(b, 42)
		got, by, err := decode(b)
		if err != nil || !reflect.DeepEqual(got, e) || by != (owner{7}) || indexedAt(b) != 42 {
			t.Errorf("%+v became %+v, %v", e, got, err)
		}
		for n := range b {
			if _, _, err := decode(b[:n]); err == nil {
				t.Errorf("the first %d of %d bytes passed for a record", n, len(b))
			}
		}
	}
}

func TestRecordIsSmall(t *testing.T) {
	if n := len(encode(samples[1], owner{})); n > 128 {
		t.Errorf("a record of a short event type takes %d bytes", n)
	}
}

func FuzzDecode(f *testing.F) {
	for _, e := range samples {
		f.Add(encode(e, owner{}))
	}
	f.Add([]byte{})
	f.Add([]byte{recordVersion})
	f.Fuzz(func(t *testing.T, b []byte) {
		e, by, err := decode(b)
		indexedAt(b)
		if err != nil {
			return
		}
		again, by2, err := decode(encode(e, by))
		if err != nil || by2 != by || !reflect.DeepEqual(again, e) {
			t.Fatalf("%+v became %+v, %v", e, again, err)
		}
	})
}
