package webhookdedup

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
)

// Sizes of pooled buffers: they start at the first, and one that has grown past the second is left to the garbage
// collector, so that a burst of large deliveries does not stay in memory.
const (
	bodyBufferSize = 4 << 10
	maxPooledBody  = 1 << 20
)

var (
	errBufferFull   = errors.New("the bodies held by all deliveries together have reached max_buffered")
	errBodyTooLarge = errors.New("the body is larger than max_body")
)

// buffered counts the bytes reserved for bodies by every delivery in this process, across configurations.
var buffered atomic.Int64

// reserve takes n bytes of the budget, or nothing where they don't fit.
func reserve(n, limit int64) bool {
	if buffered.Add(n) > limit {
		buffered.Add(-n)
		return false
	}
	return true
}

var bodyBuffers = sync.Pool{New: func() any { return bytes.NewBuffer(make([]byte, 0, bodyBufferSize)) }}

// body is the whole body of one delivery. Its buffer goes back to the pool when the handler and every reader made from
// it have let go: a transport may still be reading when its upstream has answered early.
type body struct {
	buf      *bytes.Buffer
	reserved int64
	holders  atomic.Int32
}

// readBody reads r to its end, at most limit bytes, within the budget of all deliveries. Memory is taken as bytes arrive:
// what a client merely announces costs nothing. On an error what was read so far is still there.
func readBody(r io.Reader, length, limit, budget int64) (*body, error) {
	b := &body{buf: bodyBuffers.Get().(*bytes.Buffer)}
	b.buf.Reset()
	b.holders.Store(1)
	step := int64(bodyBufferSize)
	if length >= 0 {
		step = min(step, length)
	}
	if max(length, 0)+buffered.Load() > budget || !reserve(step, budget) {
		b.release()
		return nil, errBufferFull
	}
	b.reserved = step
	chunk := io.LimitedReader{R: r}
	for {
		// One byte more than may come tells a body of exactly that size from a longer one.
		chunk.N = min(b.reserved, limit) + 1 - int64(b.buf.Len())
		_, err := b.buf.ReadFrom(&chunk)
		size := int64(b.buf.Len())
		switch {
		case err != nil:
			return b, err
		case size > limit:
			return b, errBodyTooLarge
		case size <= b.reserved:
			return b, nil
		}
		step = b.reserved
		if length > b.reserved {
			step = min(step, length-b.reserved)
		}
		if !reserve(step, budget) {
			return b, errBufferFull
		}
		b.reserved += step
	}
}

// bodyOf is a body that was made here; it does not count against the budget of what clients send.
func bodyOf(data []byte) *body {
	b := &body{buf: bytes.NewBuffer(data)}
	b.holders.Store(1)
	return b
}

func (b *body) bytes() []byte { return b.buf.Bytes() }

// release lets go of one hold.
func (b *body) release() {
	if b.holders.Add(-1) > 0 {
		return
	}
	buffered.Add(-b.reserved)
	if b.buf.Cap() <= maxPooledBody {
		bodyBuffers.Put(b.buf)
	}
	b.buf = nil
}

// reader returns a fresh reader of the whole body. It holds the buffer until it is closed; reading after that is an
// error, never another delivery's bytes.
func (b *body) reader() *bodyReader {
	b.holders.Add(1)
	return &bodyReader{body: b, left: b.bytes()}
}

// abandon is called when the handler returns. A reader that nobody has read (a later handler that ignores the body) is
// closed; one that is being read is closed by its transport, or at the latest when it is collected.
func (r *bodyReader) abandon() {
	r.mu.Lock()
	idle, open := r.body != nil && len(r.left) == len(r.body.bytes()), r.body != nil
	r.mu.Unlock()
	if idle {
		r.Close()
	} else if open {
		runtime.SetFinalizer(r, (*bodyReader).Close)
	}
}

// bodyReader deliberately has no WriteTo: it would hold the lock, and so keep Close waiting, for as long as a slow
// upstream takes.
type bodyReader struct {
	mu   sync.Mutex
	body *body
	left []byte
}

func (r *bodyReader) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.body == nil {
		return 0, http.ErrBodyReadAfterClose
	}
	if len(r.left) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.left)
	r.left = r.left[n:]
	return n, nil
}

func (r *bodyReader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.body != nil {
		r.body.release()
		r.body, r.left = nil, nil
	}
	return nil
}

// rest is what is left of a body whose beginning has been buffered, for a delivery that observe mode passes on although
// it would have been refused.
type rest struct {
	io.Reader
	io.Closer
}
