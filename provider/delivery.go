package provider

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"sync"
)

// Delivery is one HTTP request as the provider made it. It is used by one goroutine at a time. What has been read of Body is
// remembered, so the bytes must not be changed between calls; another slice may be put in its place.
type Delivery struct {
	// Method is the HTTP method.
	Method string
	// URL is the public one, as the provider signed it: scheme://host/path?query. Only schemes that sign it look at it.
	URL string
	// Query is the raw query, without the question mark.
	Query string
	// Header has canonical names, as net/http makes them.
	Header http.Header
	// Body is the raw body, still compressed if Content-Encoding says so.
	Body []byte
	// MaxDecoded bounds the decompressed copy of a body with Content-Encoding gzip, in bytes: a larger one has no JSON and
	// no form fields. Zero: the provider's MaxBody, else [DefaultMaxBody].
	MaxDecoded int64
	// Placeholder answers {http.request.*} in a content template. It may be nil.
	Placeholder func(name string) (string, bool)
	// Certificates and JWKs give the public keys of schemes that name them in the delivery. They may be nil.
	Certificates CertificateSource
	JWKs         KeySource

	read *reading
}

// reading is what one Compiled has read of a Delivery's body.
type reading struct {
	by   *Compiled
	body []byte

	plainDone, plainOK bool
	plain              []byte

	valuesDone bool
	values     []string

	formDone bool
	form     string

	batch    *batchReading
	batchErr error
}

// reading returns what has been read of d's body, empty if it is another body, or another provider's reading.
func (c *Compiled) reading(d *Delivery) *reading {
	r := d.read
	if r == nil || r.by != c || len(r.body) != len(d.Body) || len(d.Body) > 0 && &r.body[0] != &d.Body[0] {
		r = &reading{by: c, body: d.Body}
		d.read = r
	}
	return r
}

// plain is the body without its Content-Encoding; false if that is unknown, broken or too large.
func (c *Compiled) plain(d *Delivery) ([]byte, bool) {
	r := c.reading(d)
	if !r.plainDone {
		r.plainDone = true
		limit := d.MaxDecoded
		if limit <= 0 {
			limit = c.spec.MaxBody
		}
		if limit <= 0 {
			limit = DefaultMaxBody
		}
		r.plain, r.plainOK = decodeBody(d.Header["Content-Encoding"], d.Body, limit)
	}
	return r.plain, r.plainOK
}

func decodeBody(encodings []string, body []byte, limit int64) ([]byte, bool) {
	if len(encodings) == 0 {
		return body, true
	}
	if len(encodings) > 1 {
		return nil, false
	}
	switch strings.ToLower(encodings[0]) {
	case "", "identity":
		return body, true
	case "gzip", "x-gzip":
		return gunzip(body, limit)
	}
	return nil, false
}

var gzipReaders sync.Pool

func gunzip(body []byte, limit int64) ([]byte, bool) {
	src := bytes.NewReader(body)
	zr, _ := gzipReaders.Get().(*gzip.Reader)
	if zr == nil {
		zr = new(gzip.Reader)
	}
	defer func() {
		// The pool must not keep the body alive. The error is that of an empty input.
		_ = zr.Reset(bytes.NewReader(nil))
		gzipReaders.Put(zr)
	}()
	if err := zr.Reset(src); err != nil {
		return nil, false
	}
	var out bytes.Buffer
	n, err := io.Copy(&out, io.LimitReader(zr, limit+1))
	if err != nil || n > limit {
		return nil, false
	}
	return out.Bytes(), true
}
