//go:build unix

package redis

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
	"github.com/webhook-dedup/caddy-webhook-dedup/internal/testredis"
)

// fails claims until the error is as wanted: names the store, says what to do, and holds no secret.
func fails(t *testing.T, s *store, want string) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(background, 500*time.Millisecond)
		start := time.Now()
		_, _, err = s.Claim(ctx, ask("k", claim.NewToken()))
		cancel()
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("a claim took %s", took)
		}
		if err == nil {
			t.Fatalf("no error, want %q", want)
		}
		if strings.Contains(err.Error(), "s3cret") {
			t.Fatalf("a secret in %q", err)
		}
		if strings.HasPrefix(err.Error(), "claiming in redis: ") && strings.Contains(err.Error(), want) {
			return
		}
	}
	t.Errorf("%v, want %q", err, want)
}

func single(addr string) *Store { return &Store{Address: []string{addr}} }

func TestBadSurroundings(t *testing.T) {
	certs := testredis.NewCertificates(t)
	plain := testredis.Start(t, "--requirepass", "s3cret-of-admin")
	open := testredis.Start(t)
	secure := testredis.StartTLS(t, certs)
	black := blackHole(t)
	_, unused, _ := net.SplitHostPort(testredis.FreeAddr(t))
	for name, c := range map[string]struct {
		store *Store
		want  string
	}{
		"wrong password":       {&Store{Address: []string{plain.Addr}, Password: "s3cret"}, "check username and password"},
		"wrong user":           {&Store{URL: "redis://nobody:s3cret@" + plain.Addr}, "check username and password"},
		"no password":          {single(plain.Addr), "set username and password"},
		"wrong db":             {&Store{Address: []string{open.Addr}, DB: "4711"}, "check db"},
		"nothing listens":      {single("127.0.0.1:" + unused), "nothing listens there"},
		"no such socket":       {single("/does/not/exist"), "no server listens at this socket"},
		"unknown host":         {single("redis.invalid:6379"), "the name is not known"},
		"TLS to a plain port":  {&Store{URL: "rediss://:s3cret@" + open.Addr}, "seems to speak without TLS"},
		"TLS to a silent port": {&Store{URL: "rediss://" + black}, "seems to speak without TLS"},
		"plain to a TLS port":  {single(secure.Addr), "if it wants TLS"},
		"unknown authority":    {&Store{Address: []string{secure.Addr}, TLS: &TLS{}}, "set ca, or server_name"},
		"another name":         {&Store{Address: []string{secure.Addr}, TLS: &TLS{CA: certs.CA, Cert: certs.Cert, Key: certs.Key, ServerName: "else"}}, "set ca, or server_name"},
		"no certificate":       {&Store{Address: []string{secure.Addr}, TLS: &TLS{CA: certs.CA}}, "add cert to tls"},
		"cluster at one":       {&Store{Address: []string{open.Addr}, Cluster: true}, "remove cluster"},
		"sentinel at a server": {&Store{Address: []string{open.Addr}, Sentinel: "events"}, "address names the sentinels"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			core, logs := observer.New(zap.WarnLevel)
			fails(t, openStore(t, c.store, zap.New(core)), c.want)
			for deadline := time.Now().Add(10 * time.Second); logs.Len() == 0; time.Sleep(20 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("nothing was logged at the start")
				}
			}
			if text := fmt.Sprint(logs.All()[0].ContextMap()); strings.Contains(text, "s3cret") {
				t.Errorf("a secret in the log: %s", text)
			}
		})
	}
}

// blackHole accepts connections and says nothing.
func blackHole(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
		}
	}()
	return l.Addr().String()
}

// TestCausesThatPass: the store works by itself as soon as it can.
func TestCausesThatPass(t *testing.T) {
	t.Run("wrong password", func(t *testing.T) {
		t.Parallel()
		server := testredis.Start(t, "--requirepass", "another")
		s := openStore(t, &Store{Address: []string{server.Addr}, Password: "s3cret"}, zap.NewNop())
		fails(t, s, "check username and password")
		admin(t, "redis://:another@"+server.Addr, "config", "set", "requirepass", "s3cret")
		recovers(t, s)
	})
	t.Run("read-only replica", func(t *testing.T) {
		t.Parallel()
		master := testredis.Start(t)
		replica := testredis.Start(t, "--replicaof", strings.Replace(master.Addr, ":", " ", 1))
		waitForReplicas(t, master, 1)
		s := openTest(t, replica.URL())
		fails(t, s, "name the primary, or use sentinel")
		admin(t, replica.URL(), "replicaof", "no", "one")
		recovers(t, s)
	})
	t.Run("a server that comes late and empty", func(t *testing.T) {
		t.Parallel()
		server := testredis.Start(t)
		server.Kill()
		s := openTest(t, server.URL())
		fails(t, s, "nothing listens there")
		server.Restart()
		recovers(t, s)
		token := claim.NewToken()
		mustClaim(t, s, "lost", token, claim.Granted)
		server.Kill()
		server.Restart()
		recovers(t, s)
		if got, err := s.Complete(background, claim.Completion{Key: "lost", Token: token, TTL: time.Hour}); err != nil || got != claim.WrittenAnew {
			t.Errorf("complete after a restart that lost everything: %d, %v", got, err)
		}
	})
	t.Run("a name that resolves late", func(t *testing.T) {
		t.Parallel()
		server := testredis.Start(t)
		s := openStore(t, single("redis.invalid:6379"), zap.NewNop())
		fails(t, s, "the name is not known")
		late := openLate(t, server.Addr)
		fails(t, late.store, "the name is not known")
		late.known.Store(true)
		recovers(t, late.store)
	})
	t.Run("full", func(t *testing.T) {
		t.Parallel()
		server := testredis.Start(t)
		s := openTest(t, server.URL())
		mustClaim(t, s, "warm", claim.NewToken(), claim.Granted)
		admin(t, server.URL(), "config", "set", "maxmemory", "1")
		fails(t, s, "raise it")
		admin(t, server.URL(), "config", "set", "maxmemory", "0")
		recovers(t, s)
	})
	t.Run("node of a cluster", func(t *testing.T) {
		t.Parallel()
		cluster := testredis.StartCluster(t)
		fails(t, openTest(t, cluster.Nodes[(cluster.KeySlot("webhook_dedup:1:k")*3/testredis.Slots+1)%3].URL()), "add cluster")
	})
}

func admin(t *testing.T, url string, args ...any) {
	t.Helper()
	o, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(o)
	defer client.Close()
	if err := client.Do(background, args...).Err(); err != nil {
		t.Fatal(err)
	}
}

// lateStore has a name server that does not know the server at first.
type lateStore struct {
	*store
	known atomic.Bool
}

func openLate(t *testing.T, addr string) *lateStore {
	t.Helper()
	late := &lateStore{}
	m := single("late.example:6379")
	if err := m.Provision(caddy.Context{}); err != nil {
		t.Fatal(err)
	}
	options, errs := *m.options, &explainer{}
	d := &dialer{options.DialTimeout, nil, errs}
	options.Dialer = func(ctx context.Context, network, name string) (net.Conn, error) {
		if !late.known.Load() {
			err := &net.OpError{Op: "dial", Net: network, Err: &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}}
			errs.connected(err)
			return nil, err
		}
		return d.dial(ctx, network, addr)
	}
	s, err := newStore(newClient(&options), "late")
	if err != nil {
		t.Fatal(err)
	}
	s.errors, late.store = errs, s
	t.Cleanup(func() { s.Close() })
	return late
}

// TestNoServersWordsWithASecret: some proxies repeat what they refuse, AUTH with its password among it.
func TestNoServersWordsWithASecret(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for b := make([]byte, 4096); ; {
					n, err := c.Read(b)
					if err != nil {
						return
					}
					fmt.Fprintf(c, "-ERR unknown command, with args beginning with: %q\r\n", b[:n])
				}
			}()
		}
	}()
	fails(t, openStore(t, &Store{Address: []string{l.Addr().String()}, Password: "s3cret"}, zap.NewNop()), "not repeated, since they hold a secret")
}

// TestOpenAndClose leaves nothing behind, in any shape.
func TestOpenAndClose(t *testing.T) {
	server := testredis.Start(t)
	group := testredis.StartSentinel(t, testredis.Auth{})
	cluster := testredis.StartCluster(t)
	for name, c := range map[string]struct {
		store   *Store
		servers []*testredis.Server
	}{
		"single":   {&Store{URL: server.URL(), Replicas: replicate(1, "1ms")}, []*testredis.Server{server}},
		"sentinel": {&Store{Address: group.Addrs(), Sentinel: testredis.MasterName}, append(slices.Clone(group.Servers), group.Sentinels...)},
		"cluster":  {&Store{Address: cluster.Addrs(), Cluster: true}, cluster.Nodes},
	} {
		if err := c.store.Provision(caddy.Context{}); err != nil {
			t.Fatal(err)
		}
		before, connected := runtime.NumGoroutine(), connections(t, c.servers)
		for i := range 100 {
			s, err := c.store.OpenStore(zap.NewNop())
			if err != nil {
				t.Fatal(err)
			}
			mustClaim(t, s, fmt.Sprint(name, i), claim.NewToken(), claim.Granted)
			mustComplete(t, s, fmt.Sprint(name, i, "anew"), claim.NewToken())
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		for deadline := time.Now().Add(15 * time.Second); ; time.Sleep(50 * time.Millisecond) {
			goroutines, open := runtime.NumGoroutine(), connections(t, c.servers)
			if goroutines <= before+5 && open <= connected {
				t.Logf("%s: %d goroutines, were %d; %d connections, were %d", name, goroutines, before, open, connected)
				break
			}
			if time.Now().After(deadline) {
				b := make([]byte, 1<<20)
				os.Stderr.Write(b[:runtime.Stack(b, true)])
				t.Fatalf("%s: %d goroutines, were %d; %d connections, were %d", name, goroutines, before, open, connected)
			}
		}
	}
}

// connections counts those of clients; replicas, sentinels and cluster nodes among each other come and go by themselves.
func connections(t *testing.T, servers []*testredis.Server) (n int) {
	t.Helper()
	for _, server := range servers {
		client := redis.NewClient(&redis.Options{Addr: server.Addr, DisableIdentity: true})
		list, err := client.ClientList(background).Result()
		client.Close()
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(list) {
			if !strings.Contains(line, "name=sentinel-") && !strings.Contains(line, "flags=S") && !strings.Contains(line, "flags=M") {
				n++
			}
		}
	}
	return n
}
