package webhookdedup

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"
)

func TestReadBody(t *testing.T) {
	const limit, budget = 10_000, 100_000
	for _, test := range []struct {
		name   string
		size   int
		length int64 // as Content-Length says
		err    error
	}{
		{"empty", 0, 0, nil},
		{"empty, chunked", 0, -1, nil},
		{"small", 10, 10, nil},
		{"chunked", 9_000, -1, nil},
		{"exactly the limit", limit, limit, nil},
		{"exactly the limit, chunked", limit, -1, nil},
		{"one too many, chunked", limit + 1, -1, errBodyTooLarge},
		{"far too many, chunked", 5 * limit, -1, errBodyTooLarge},
	} {
		t.Run(test.name, func(t *testing.T) {
			data := bytes.Repeat([]byte("x"), test.size)
			b, err := readBody(iotest.OneByteReader(bytes.NewReader(data)), test.length, limit, budget)
			if !errors.Is(err, test.err) {
				t.Fatalf("error %v, want %v", err, test.err)
			}
			if err == nil && !bytes.Equal(b.bytes(), data) {
				t.Errorf("read %d bytes of %d", len(b.bytes()), len(data))
			}
			b.release()
			if n := buffered.Load(); n != 0 {
				t.Errorf("%d bytes still reserved", n)
			}
		})
	}
	t.Run("over the budget before reading", func(t *testing.T) {
		read := false
		r := readerFunc(func([]byte) (int, error) { read = true; return 0, io.EOF })
		if _, err := readBody(r, 2000, limit, 1000); !errors.Is(err, errBufferFull) || read {
			t.Errorf("error %v, read %v", err, read)
		}
	})
	t.Run("over the budget while reading", func(t *testing.T) {
		b, err := readBody(bytes.NewReader(make([]byte, 9000)), -1, limit, 5000)
		if !errors.Is(err, errBufferFull) {
			t.Errorf("error %v", err)
		}
		b.release()
	})
	t.Run("a client that dies", func(t *testing.T) {
		b, err := readBody(io.MultiReader(strings.NewReader("half"), iotest.ErrReader(io.ErrUnexpectedEOF)), 10, limit, budget)
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("error %v", err)
		}
		b.release()
	})
	if n := buffered.Load(); n != 0 {
		t.Errorf("%d bytes still reserved", n)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// TestBodyReadersNeverMix reads bodies slowly in goroutines that outlive their delivery, while buffers are reused.
func TestBodyReadersNeverMix(t *testing.T) {
	var all sync.WaitGroup
	for i := range 200 {
		fill := byte('a' + i%26)
		size := rand.IntN(20_000) + 1
		all.Go(func() {
			b, err := readBody(bytes.NewReader(bytes.Repeat([]byte{fill}, size)), int64(size), 1<<20, 1<<30)
			if err != nil {
				t.Error(err)
				return
			}
			upstream := b.reader()
			all.Go(func() {
				buf := make([]byte, 512)
				for {
					n, err := upstream.Read(buf)
					if len(bytes.Trim(buf[:n], string(fill))) != 0 {
						t.Error("bytes of another delivery")
					}
					if err != nil || rand.IntN(20) == 0 {
						upstream.Close()
						return
					}
					runtime.Gosched()
				}
			})
			b.release()
		})
	}
	all.Wait()
	if n := buffered.Load(); n != 0 {
		t.Errorf("%d bytes still reserved", n)
	}
}

func TestBodyReaderAfterClose(t *testing.T) {
	b, err := readBody(strings.NewReader("secret"), 6, 100, 100)
	if err != nil {
		t.Fatal(err)
	}
	r := b.reader()
	b.release()
	if got, err := io.ReadAll(r); string(got) != "secret" || err != nil {
		t.Errorf("read %q, %v", got, err)
	}
	r.Close()
	r.Close()
	if n, err := r.Read(make([]byte, 10)); n != 0 || !errors.Is(err, http.ErrBodyReadAfterClose) {
		t.Errorf("a closed reader read %d bytes, %v", n, err)
	}
	if n := buffered.Load(); n != 0 {
		t.Errorf("%d bytes still reserved", n)
	}
}

func TestAbandonedReaders(t *testing.T) {
	b, err := readBody(strings.NewReader("body"), 4, 100, 100)
	if err != nil {
		t.Fatal(err)
	}
	b.reader().abandon() // never read: closed at once
	half := b.reader()
	if _, err := half.Read(make([]byte, 2)); err != nil {
		t.Fatal(err)
	}
	half.abandon() // being read: closed when it is collected, at the latest
	b.release()
	half = nil
	deadline := time.Now().Add(10 * time.Second)
	for buffered.Load() != 0 {
		if time.Now().After(deadline) {
			t.Fatalf("%d bytes still reserved", buffered.Load())
		}
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
}
