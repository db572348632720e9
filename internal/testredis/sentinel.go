//go:build unix

package testredis

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// MasterName is what the sentinels call the master.
const MasterName = "events"

// readyTimeout bounds the waiting for a group of servers to settle, on a machine that does much else.
const readyTimeout = 60 * time.Second

// Sentinel is one master with two replicas and three sentinels, which end with the test.
type Sentinel struct {
	// Servers are the three that hold data; which one is the master changes.
	Servers []*Server
	// Sentinels are the three that watch.
	Sentinels []*Server

	t    testing.TB
	auth Auth
}

// Auth has the passwords of a group of servers; without them there are none.
type Auth struct{ Password, SentinelPassword string }

// StartSentinel runs the six servers and waits until the sentinels know everything.
func StartSentinel(t testing.TB, auth Auth) *Sentinel {
	t.Helper()
	s := &Sentinel{t: t, auth: auth}
	var password []string
	if auth.Password != "" {
		password = []string{"--requirepass", auth.Password, "--masterauth", auth.Password}
	}
	for i := range 3 {
		args := append([]string{"--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1"}, password...)
		if i > 0 {
			args = append(args, "--replicaof", strings.Replace(s.Servers[0].Addr, ":", " ", 1))
		}
		s.Servers = append(s.Servers, Start(t, args...))
	}
	for range 3 {
		s.Sentinels = append(s.Sentinels, start(t, setup{sentinel: true, args: s.sentinelConfig}))
	}
	s.WaitReady()
	return s
}

// sentinelConfig writes the file that a sentinel keeps its state in, and names it.
func (s *Sentinel) sentinelConfig(dir string) []string {
	host, port, _ := net.SplitHostPort(s.Servers[0].Addr)
	text := fmt.Sprintf("sentinel monitor %[1]s %[2]s %[3]s 2\nsentinel down-after-milliseconds %[1]s 1000\nsentinel failover-timeout %[1]s 4000\n",
		MasterName, host, port)
	if s.auth.Password != "" {
		text += fmt.Sprintf("sentinel auth-pass %s %s\n", MasterName, s.auth.Password)
	}
	if s.auth.SentinelPassword != "" {
		text += fmt.Sprintf("requirepass %[1]s\nsentinel sentinel-pass %[1]s\n", s.auth.SentinelPassword)
	}
	file := filepath.Join(dir, "sentinel.conf")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return []string{file, "--sentinel"}
}

// Addrs are those of the sentinels.
func (s *Sentinel) Addrs() []string { return addrs(s.Sentinels) }

func addrs(servers []*Server) (all []string) {
	for _, server := range servers {
		all = append(all, server.Addr)
	}
	return all
}

// Master is the server that most sentinels take for the master.
func (s *Sentinel) Master() *Server {
	votes := map[string]int{}
	for _, sentinel := range s.Sentinels {
		addr, _ := do(sentinel, s.auth.SentinelPassword, "sentinel", "get-master-addr-by-name", MasterName).StringSlice()
		if len(addr) == 2 {
			votes[net.JoinHostPort(addr[0], addr[1])]++
		}
	}
	for _, server := range s.Servers {
		if votes[server.Addr] >= 2 {
			return server
		}
	}
	return nil
}

// Failover makes the sentinels put a replica into the master's place and waits until that has been done. The old master
// runs on and becomes a replica.
func (s *Sentinel) Failover() {
	s.t.Helper()
	old := s.Master()
	for deadline := time.Now().Add(readyTimeout); ; time.Sleep(200 * time.Millisecond) {
		err := do(s.Sentinels[0], s.auth.SentinelPassword, "sentinel", "failover", MasterName).Err()
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("failover: %v", err)
		}
	}
	s.WaitMaster(func(master *Server) bool { return master != old })
}

// WaitMaster waits until the sentinels agree on a master that answers as one and satisfies right.
func (s *Sentinel) WaitMaster(right func(*Server) bool) *Server {
	s.t.Helper()
	for deadline := time.Now().Add(readyTimeout); ; time.Sleep(20 * time.Millisecond) {
		if master := s.Master(); master != nil && right(master) && strings.Contains(s.info(master, "replication"), "role:master") {
			return master
		}
		if time.Now().After(deadline) {
			s.t.Fatal("the sentinels agree on no master")
		}
	}
}

func (s *Sentinel) info(server *Server, section string) string {
	text, _ := do(server, s.auth.Password, "info", section).Text()
	return text
}

// WaitReady waits until the master has both replicas and each sentinel knows all servers and all sentinels.
func (s *Sentinel) WaitReady() {
	s.t.Helper()
	ready := func() bool {
		master := s.Master()
		if master == nil || strings.Count(s.info(master, "replication"), "state=online") != 2 {
			return false
		}
		return !slices.ContainsFunc(s.Sentinels, func(sentinel *Server) bool {
			text, _ := do(sentinel, s.auth.SentinelPassword, "info", "sentinel").Text()
			return !strings.Contains(text, "status=ok") || !strings.Contains(text, "slaves=2,sentinels=3")
		})
	}
	for deadline := time.Now().Add(readyTimeout); !ready(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatal("the sentinels are not ready")
		}
	}
}

// do sends one command.
func do(server *Server, password string, args ...any) *redis.Cmd {
	client := redis.NewClient(&redis.Options{Addr: server.Addr, Password: password, MaxRetries: -1, DialTimeout: time.Second, ReadTimeout: 5 * time.Second})
	defer client.Close()
	return client.Do(context.Background(), args...)
}
