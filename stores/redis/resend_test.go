//go:build unix

package redis

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
)

// fakeServer speaks just enough of the protocol for a client to connect and to learn the shape of a cluster. Scripts are
// counted and given to onScript, whose answer is sent; empty, the connection is closed as by a crash.
type fakeServer struct {
	net.Listener
	scripts  atomic.Int64
	onScript func() string
}

func newFakeServer(t *testing.T, onScript func() string) *fakeServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeServer{Listener: l, onScript: onScript}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go f.serve(c)
		}
	}()
	return f
}

func (f *fakeServer) addr() string { return f.Addr().String() }

func (f *fakeServer) serve(c net.Conn) {
	defer c.Close()
	for r := bufio.NewReader(c); ; {
		args, err := readCommand(r)
		if err != nil {
			return
		}
		answer := "+OK\r\n"
		switch strings.ToLower(args[0]) {
		case "hello":
			answer = "-ERR unknown command\r\n"
		case "cluster":
			host, port, _ := net.SplitHostPort(f.addr())
			answer = fmt.Sprintf("*1\r\n*3\r\n:0\r\n:16383\r\n*3\r\n$%d\r\n%s\r\n:%s\r\n$2\r\nid\r\n", len(host), host, port)
		case "info", "config":
			answer = "-NOPERM\r\n"
		case "evalsha", "eval":
			f.scripts.Add(1)
			if answer = f.onScript(); answer == "" {
				return
			}
		}
		if _, err := io.WriteString(c, answer); err != nil {
			return
		}
	}
}

func readCommand(r *bufio.Reader) ([]string, error) {
	number := func() (int, error) {
		line, err := r.ReadString('\n')
		if err != nil {
			return 0, err
		}
		return strconv.Atoi(strings.TrimSpace(line[1:]))
	}
	n, err := number()
	args := make([]string, n)
	for i := range args {
		size, wrong := number()
		if wrong != nil {
			return nil, wrong
		}
		b := make([]byte, size+2)
		if _, err = io.ReadFull(r, b); err != nil {
			return nil, err
		}
		args[i] = string(b[:size])
	}
	return args, err
}

// TestNothingIsSentTwice: what may have been applied is not sent again, in any shape and on any path. A server that dies
// over a script gets it once.
func TestNothingIsSentTwice(t *testing.T) {
	dies := func() string { return "" }
	for name, c := range map[string]func(t *testing.T) (store *Store, died *fakeServer){
		"single": func(t *testing.T) (*Store, *fakeServer) {
			f := newFakeServer(t, dies)
			return single(f.addr()), f
		},
		"cluster": func(t *testing.T) (*Store, *fakeServer) {
			f := newFakeServer(t, dies)
			return &Store{Address: []string{f.addr()}, Cluster: true}, f
		},
		"moved": func(t *testing.T) (*Store, *fakeServer) {
			f := newFakeServer(t, dies)
			from := newFakeServer(t, func() string { return "-MOVED 1 " + f.addr() + "\r\n" })
			return &Store{Address: []string{from.addr()}, Cluster: true}, f
		},
		"ask": func(t *testing.T) (*Store, *fakeServer) {
			f := newFakeServer(t, dies)
			from := newFakeServer(t, func() string { return "-ASK 1 " + f.addr() + "\r\n" })
			return &Store{Address: []string{from.addr()}, Cluster: true}, f
		},
	} {
		for _, waiting := range []*Replicas{nil, replicate(1, "50ms")} {
			t.Run(fmt.Sprint(name, " waiting ", waiting != nil), func(t *testing.T) {
				t.Parallel()
				m, died := c(t)
				m.Replicas = waiting
				s := openStore(t, m, zap.NewNop())
				for i, op := range []func(context.Context) error{
					func(ctx context.Context) error { _, _, err := s.Claim(ctx, ask("k", claim.NewToken())); return err },
					func(ctx context.Context) error {
						_, err := s.Complete(ctx, claim.Completion{Key: "k", Token: claim.NewToken(), TTL: time.Hour})
						return err
					},
					func(ctx context.Context) error {
						_, err := s.Release(ctx, claim.Release{Key: "k", Token: claim.NewToken(), Keep: time.Hour})
						return err
					},
				} {
					ctx, cancel := context.WithTimeout(background, 5*time.Second)
					err := op(ctx)
					cancel()
					if err == nil {
						t.Error("no error")
					}
					if n := died.scripts.Load(); n != int64(i+1) {
						t.Fatalf("%d operations were sent %d times: %v", i+1, n, err)
					}
				}
			})
		}
	}
}

// TestRedirectionLoop ends although two nodes point at each other.
func TestRedirectionLoop(t *testing.T) {
	var other string
	a := newFakeServer(t, func() string { return "-MOVED 1 " + other + "\r\n" })
	b := newFakeServer(t, func() string { return "-MOVED 1 " + a.addr() + "\r\n" })
	other = b.addr()
	s := openStore(t, &Store{Address: []string{a.addr()}, Cluster: true}, zap.NewNop())
	ctx, cancel := context.WithTimeout(background, 5*time.Second)
	defer cancel()
	start := time.Now()
	if _, _, err := s.Claim(ctx, ask("k", claim.NewToken())); err == nil || time.Since(start) > 2*time.Second {
		t.Errorf("%v after %s", err, time.Since(start))
	}
}
