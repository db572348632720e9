package webhookdedup

import (
	"bytes"
	"maps"
	"net/http"
	"sync"
)

const maxPooledResponse = 64 << 10

var responseBuffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// response is the http.ResponseWriter that the later handlers see. It keeps the application's answer back until the
// record is written; an answer that outgrows limit is handed to outgrown, and then streamed to the client as far as
// the client is still there. It has no Unwrap: nothing may reach past it to a client that may be gone.
type response struct {
	header http.Header
	status int // 0 until the first final header
	body   *bytes.Buffer
	limit  int64

	// outgrown is called once, when the body is longer than limit: it records the outcome and returns the client to
	// stream to, or nil to drop the rest.
	outgrown  func() http.ResponseWriter
	overflown bool
	started   bool                // the client has been sent the beginning
	client    http.ResponseWriter // while streaming; nil once it has gone
}

// newResponse starts from the headers that earlier handlers have set for the client, so that later ones can add to
// them and take from them as they would without this module.
func newResponse(header http.Header, limit int64) *response {
	body := responseBuffers.Get().(*bytes.Buffer)
	body.Reset()
	return &response{header: header.Clone(), body: body, limit: limit}
}

func (r *response) Header() http.Header { return r.header }

func (r *response) WriteHeader(status int) {
	if r.status == 0 && status >= 200 { // what is informational stays between application and proxy
		r.status = status
	}
}

func (r *response) Write(p []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	if r.overflown {
		r.stream(p)
		return len(p), nil
	}
	if int64(r.body.Len()+len(p)) <= r.limit {
		return r.body.Write(p)
	}
	r.overflown = true
	r.client = r.outgrown()
	if r.client != nil {
		r.started = true
		r.copyHeader(r.client)
		r.client.WriteHeader(r.status)
		r.stream(r.body.Bytes())
		r.stream(p)
	}
	return len(p), nil
}

// stream sends p to the client. One that has gone does not keep the application from finishing.
func (r *response) stream(p []byte) {
	if r.client == nil {
		return
	}
	if _, err := r.client.Write(p); err != nil {
		r.client = nil
	}
}

// FlushError does nothing while the answer is kept back; a streamed one is flushed.
func (r *response) FlushError() error {
	if r.client != nil {
		_ = http.NewResponseController(r.client).Flush() // a client that has gone is noticed by the next Write
	}
	return nil
}

// copyHeader makes w's headers those of the application's answer, but for the module's own.
func (r *response) copyHeader(w http.ResponseWriter) {
	own := w.Header()[resultHeader]
	clear(w.Header())
	maps.Copy(w.Header(), r.header)
	if own != nil {
		w.Header()[resultHeader] = own
	} else {
		w.Header().Del(resultHeader)
	}
}

// send writes the whole answer that was kept back.
func (r *response) send(w http.ResponseWriter) {
	r.copyHeader(w)
	w.WriteHeader(r.status)
	_, _ = w.Write(r.body.Bytes()) // the client may be gone; the outcome is recorded
}

// free gives the buffer back.
func (r *response) free() {
	if r.body.Cap() <= maxPooledResponse {
		responseBuffers.Put(r.body)
	}
	r.body = nil
}
