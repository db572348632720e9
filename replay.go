package webhookdedup

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"

	"go.uber.org/zap"
)

// What is not kept of a response that is replayed: it belongs to one connection, one moment or one client.
var notStored = []string{"Connection", "Keep-Alive", "Proxy-Authenticate", "Trailer", "Transfer-Encoding", "Upgrade", "Te",
	"Date", "Set-Cookie", "Content-Length", "Alt-Svc", resultHeader}

// storable is the application's response as it is kept with the record, in HTTP's own format, or nil where the route
// does not replay or the response is too large for it.
func (d *delivery) storable(res *response) []byte {
	limit := d.h.replayLimit
	if limit == 0 || res.status < 200 || res.status > 299 { // a duplicate told anything else would be delivered again
		return nil
	}
	header := maps.Clone(res.header)
	for _, name := range notStored {
		delete(header, name)
	}
	var stored bytes.Buffer
	fmt.Fprintf(&stored, "HTTP/1.1 %d \r\n", res.status)
	_ = header.Write(&stored) // a bytes.Buffer takes everything
	fmt.Fprintf(&stored, "Content-Length: %d\r\n\r\n", res.body.Len())
	stored.Write(res.body.Bytes())
	if int64(stored.Len()) > limit {
		d.logger().Warn("the response is too large to be replayed; duplicates will get a plain 200",
			zap.Int("bytes", stored.Len()), zap.Int64("limit", limit))
		return nil
	}
	return stored.Bytes()
}

// answerDuplicate answers an event that was processed before, without asking the application.
func (d *delivery) answerDuplicate() error {
	d.reportChange(&d.claimedEvent)
	if d.h.observes() {
		return d.forwardUnclaimed(resultDuplicate)
	}
	d.mark(resultDuplicate)
	if d.h.replayLimit > 0 && d.record.Response != nil {
		if d.replay(d.record.Response) {
			return nil
		}
		d.logger().Error("the stored response cannot be read; answering 200")
	}
	d.answer(d.h.Duplicate.Status, []byte(d.h.Duplicate.Body))
	return nil
}

// replay answers with a stored response.
func (d *delivery) replay(stored []byte) bool {
	res, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(stored)), d.r)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return false
	}
	header := d.w.Header()
	maps.Copy(header, res.Header)
	if len(body) == 0 {
		header.Del("Content-Length") // a 204 must not have one
	}
	d.w.WriteHeader(res.StatusCode)
	_, _ = d.w.Write(body) // the client may be gone
	return true
}

// accept answers 200 to a delivery in flight, where the route is configured to.
func (d *delivery) accept() error {
	if d.h.observes() {
		return d.forwardUnclaimed(resultInFlight)
	}
	d.mark(resultInFlight)
	d.answer(http.StatusOK, nil)
	return nil
}
