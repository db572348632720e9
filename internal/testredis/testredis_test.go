//go:build unix

package testredis

import (
	"testing"
	"time"
)

func TestSentinelFailsOver(t *testing.T) {
	t.Parallel()
	start := time.Now()
	s := StartSentinel(t, Auth{Password: "data", SentinelPassword: "watch"})
	t.Logf("ready after %s", time.Since(start).Round(time.Millisecond))
	first := s.Master()
	start = time.Now()
	s.Failover()
	t.Logf("failed over after %s", time.Since(start).Round(time.Millisecond))
	s.WaitReady()
	second := s.Master()
	start = time.Now()
	second.Kill()
	third := s.WaitMaster(func(master *Server) bool { return master != second })
	t.Logf("a dead master was replaced after %s", time.Since(start).Round(time.Millisecond))
	if first == second || second == third {
		t.Error("the master is the same")
	}
}

func TestClusterMovesSlots(t *testing.T) {
	t.Parallel()
	start := time.Now()
	c := StartCluster(t)
	t.Logf("ready after %s", time.Since(start).Round(time.Millisecond))
	slot := c.KeySlot("k")
	from := c.Owner(slot)
	if err := do(from, "", "set", "k", "v").Err(); err != nil {
		t.Fatal(err)
	}
	to := c.Nodes[0]
	if to == from {
		to = c.Nodes[1]
	}
	if n := c.MigrateSlot(slot, to, 0); n != 1 {
		t.Errorf("%d keys were moved", n)
	}
	if got, err := do(to, "", "get", "k").Text(); err != nil || got != "v" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	StartTLS(t, NewCertificates(t))
}
