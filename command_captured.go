package webhookdedup

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"

	"github.com/webhook-dedup/caddy-webhook-dedup/provider"
)

// captured is a delivery out of a file: a body, or a whole request.
type captured struct {
	request *http.Request // nil: only a body was captured
	body    []byte
}

// startLine is the first line of an HTTP request. Tools write HTTP/2 and HTTP/3, too, where there is no such line.
var startLine = regexp.MustCompile(`\A([A-Z]+ \S+ HTTP/)[0-9](?:\.[0-9])?(\r?\n)`)

// parseCaptured reads a file: one that starts like an HTTP request is one, any other is a body.
func parseCaptured(content []byte) (*captured, error) {
	if !startLine.Match(content) {
		if len(content) == 0 {
			return nil, errors.New("it is empty")
		}
		return &captured{body: content}, nil
	}
	reader := bufio.NewReader(bytes.NewReader(startLine.ReplaceAll(content, []byte("${1}1.1${2}"))))
	r, err := http.ReadRequest(reader)
	if err != nil {
		return nil, fmt.Errorf("reading it as an HTTP request: %w", err)
	}
	from := io.Reader(r.Body)
	if r.Header.Get("Content-Length") == "" && len(r.TransferEncoding) == 0 {
		from = reader // without a length, the body is what is left
	}
	body, err := io.ReadAll(from)
	if err != nil {
		return nil, fmt.Errorf("reading the request's body (is it shorter than its Content-Length?): %w", err)
	}
	rest, err := io.ReadAll(reader)
	if err != nil {
		return nil, fmt.Errorf("reading it: %w", err)
	}
	if len(bytes.TrimSpace(rest)) > 0 {
		return nil, fmt.Errorf("it goes on after the %d bytes of the request's body; is its Content-Length right?", len(body))
	}
	return &captured{request: r, body: body}, nil
}

// notReplayed are headers of a captured request that were about its connection, or are made anew.
var notReplayed = []string{"Accept-Encoding", "Connection", "Content-Length", "Expect", "Host", "Keep-Alive", "Proxy-Authorization",
	"Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade", keyHeader, attemptHeader}

// replay puts what was captured in the place of the example. It returns the spec that signs it: with the schemes of the
// header family that the captured request has, where a provider has several.
func (c *captured) replay(s *sender, spec provider.Spec, example provider.Delivery, id string, idGiven bool) provider.Spec {
	s.body = c.body
	if c.request == nil {
		return spec
	}
	header := c.request.Header
	schemes := slices.DeleteFunc(slices.Clone(spec.Schemes), func(scheme provider.Scheme) bool {
		return header.Get(scheme.Header) == "" && (scheme.IDHeader == "" || header.Get(scheme.IDHeader) == "")
	})
	for _, name := range append(signatureHeaders(spec), notReplayed...) {
		header.Del(name)
	}
	if len(schemes) > 0 {
		spec.Schemes = schemes
	}
	if idGiven {
		setID(header, spec, example, id)
	}
	s.method, s.header = c.request.Method, header
	// An endpoint that is only named by its host is where the request was captured.
	if s.url.Path == "" && s.url.RawQuery == "" {
		s.url = s.url.ResolveReference(&url.URL{Path: c.request.URL.Path, RawPath: c.request.URL.RawPath, RawQuery: c.request.URL.RawQuery})
	}
	return spec
}

// setID gives the captured request another event ID, where that is in a header.
func setID(header http.Header, spec provider.Spec, example provider.Delivery, id string) {
	for _, scheme := range spec.Schemes {
		if scheme.IDHeader != "" {
			header.Set(scheme.IDHeader, id)
			return
		}
	}
	for name := range example.Header {
		if example.Header.Get(name) == id {
			header.Set(name, id)
		}
	}
}
