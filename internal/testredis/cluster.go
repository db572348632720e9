//go:build unix

package testredis

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Slots is how many a cluster has.
const Slots = 16384

// Cluster is three masters, Nodes[0] to Nodes[2] at first, each with a replica. They end with the test.
type Cluster struct {
	Nodes []*Server

	t   testing.TB
	ids []string
}

// StartCluster runs the six nodes and waits until they serve every slot.
func StartCluster(t testing.TB, args ...string) *Cluster {
	t.Helper()
	c := &Cluster{t: t}
	for range 6 {
		c.Nodes = append(c.Nodes, start(t, setup{bus: true, args: func(string) []string {
			return append([]string{
				"--cluster-enabled", "yes", "--cluster-node-timeout", "2000", "--cluster-config-file", "nodes.conf",
				"--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1",
			}, args...)
		}}))
	}
	for i, node := range c.Nodes {
		id, err := do(node, "", "cluster", "myid").Text()
		if err != nil {
			t.Fatal(err)
		}
		c.ids = append(c.ids, id)
		c.must(node, "cluster", "set-config-epoch", i+1)
		if i < 3 {
			c.must(node, "cluster", "addslotsrange", i*Slots/3, (i+1)*Slots/3-1)
		}
		host, port, _ := net.SplitHostPort(node.Addr)
		c.must(c.Nodes[0], "cluster", "meet", host, port)
	}
	c.wait("every node knows every other", func() bool {
		for _, node := range c.Nodes {
			text, _ := do(node, "", "cluster", "info").Text()
			if !strings.Contains(text, "cluster_known_nodes:6\r") {
				return false
			}
		}
		return true
	})
	for i := range 3 {
		c.must(c.Nodes[3+i], "cluster", "replicate", c.ids[i])
	}
	c.WaitReady()
	return c
}

func (c *Cluster) must(node *Server, args ...any) {
	c.t.Helper()
	if err := do(node, "", args...).Err(); err != nil {
		c.t.Fatalf("%v at %s: %v", args, node.Addr, err)
	}
}

func (c *Cluster) wait(what string, done func() bool) {
	c.t.Helper()
	for deadline := time.Now().Add(readyTimeout); !done(); time.Sleep(30 * time.Millisecond) {
		if time.Now().After(deadline) {
			c.t.Fatalf("waiting until %s took too long", what)
		}
	}
}

// WaitReady waits until every node sees all slots served and every replica follows its master.
func (c *Cluster) WaitReady() {
	c.t.Helper()
	c.wait("the cluster is ready", func() bool {
		for _, node := range c.Nodes {
			state, _ := do(node, "", "cluster", "info").Text()
			info, _ := do(node, "", "info", "replication").Text()
			if !strings.Contains(state, "cluster_state:ok") ||
				strings.Contains(info, "role:master") && !strings.Contains(info, "state=online") ||
				strings.Contains(info, "role:slave") && !strings.Contains(info, "master_link_status:up") {
				return false
			}
		}
		return true
	})
}

// Addrs are those of all nodes.
func (c *Cluster) Addrs() []string { return addrs(c.Nodes) }

// Owner is the master that serves a slot.
func (c *Cluster) Owner(slot int) *Server {
	c.t.Helper()
	slots, err := do(c.Nodes[0], "", "cluster", "slots").Slice()
	if err != nil {
		c.t.Fatal(err)
	}
	for _, entry := range slots {
		parts := entry.([]any)
		if parts[0].(int64) <= int64(slot) && int64(slot) <= parts[1].(int64) {
			id := parts[2].([]any)[2].(string)
			for i, other := range c.ids {
				if other == id {
					return c.Nodes[i]
				}
			}
		}
	}
	c.t.Fatalf("no master has slot %d", slot)
	return nil
}

// KeySlot is the slot of a key.
func (c *Cluster) KeySlot(key string) int {
	c.t.Helper()
	slot, err := do(c.Nodes[0], "", "cluster", "keyslot", key).Int()
	if err != nil {
		c.t.Fatal(err)
	}
	return slot
}

// MigrateSlot moves a slot to another master while it is used, as `redis-cli --cluster reshard` does, a few keys at a time
// with a pause between them, so that much happens meanwhile. It returns how many keys were moved.
func (c *Cluster) MigrateSlot(slot int, to *Server, pause time.Duration) (moved int) {
	c.t.Helper()
	from := c.Owner(slot)
	id := func(node *Server) string {
		for i, other := range c.Nodes {
			if other == node {
				return c.ids[i]
			}
		}
		return ""
	}
	c.must(to, "cluster", "setslot", slot, "importing", id(from))
	c.must(from, "cluster", "setslot", slot, "migrating", id(to))
	source := redis.NewClient(&redis.Options{Addr: from.Addr, MaxRetries: -1, ReadTimeout: 10 * time.Second})
	defer source.Close()
	host, port, _ := net.SplitHostPort(to.Addr)
	for ctx := context.Background(); ; time.Sleep(pause) {
		keys, err := source.ClusterGetKeysInSlot(ctx, slot, 5).Result()
		if err != nil {
			c.t.Fatal(err)
		}
		if len(keys) == 0 {
			break
		}
		args := []any{"migrate", host, port, "", 0, 5000, "keys"}
		for _, key := range keys {
			args = append(args, key)
		}
		if err := source.Do(ctx, args...).Err(); err != nil {
			c.t.Fatal(err)
		}
		moved += len(keys)
	}
	time.Sleep(10 * pause) // a slot without keys, half moved
	// The new owner learns it first: the other way round both would point at each other for a moment.
	for _, node := range append([]*Server{to, from}, c.Nodes...) {
		if text, _ := do(node, "", "info", "replication").Text(); strings.Contains(text, "role:master") {
			c.must(node, "cluster", "setslot", slot, "node", id(to))
		}
	}
	return moved
}
