//go:build unix

package redis

import (
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/webhook-dedup/caddy-webhook-dedup/internal/testredis"
)

func TestWarnings(t *testing.T) {
	right := map[string]string{
		"redis_version": "7.2.4", "maxmemory_policy": "noeviction", "aof_enabled": "1", "role": "master", "cluster_enabled": "0",
	}
	for _, c := range []struct {
		name, value string
		config      map[string]string
		want        string
	}{
		{"", "", nil, ""},
		{"maxmemory_policy", "allkeys-lru", nil, "maxmemory-policy allkeys-lru"},
		{"maxmemory_policy", "volatile-ttl", nil, "maxmemory-policy volatile-ttl"},
		{"aof_enabled", "0", map[string]string{"save": ""}, "nothing on disk"},
		{"aof_enabled", "0", map[string]string{"save": "3600 1"}, ""},
		{"aof_enabled", "0", nil, ""}, // not known
		{"redis_version", "6.0.16", nil, "older than 6.2"},
		{"redis_version", "5.0.0", nil, "older than 6.2"},
		{"redis_version", "6.2.0", nil, ""},
		{"redis_version", "8.0", nil, ""},
		{"redis_version", "10.0.0", nil, ""},
		{"redis_version", "unknown", nil, ""},
		{"role", "slave", nil, "read-only replica"},
		{"cluster_enabled", "1", nil, "add cluster"},
	} {
		info := map[string]string{}
		for name, value := range right {
			info[name] = value
		}
		info[c.name] = c.value
		got := warnings(info, c.config, false)
		if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || !strings.Contains(got[0], c.want)) {
			t.Errorf("%s=%s: %q, want %q", c.name, c.value, got, c.want)
		}
	}
	if got := warnings(map[string]string{"cluster_enabled": "1"}, nil, true); len(got) > 0 {
		t.Error(got)
	}
}

// advised returns what is logged when a store is opened.
func advised(t *testing.T, m *Store) (messages []string) {
	t.Helper()
	core, logs := observer.New(zap.WarnLevel)
	s := openStore(t, m, zap.New(core))
	ended := make(chan struct{})
	go func() {
		s.adviser.wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Fatal("the adviser does not end")
	}
	for _, entry := range logs.All() {
		messages = append(messages, entry.Message)
	}
	return messages
}

func TestAdvice(t *testing.T) {
	has := func(messages []string, pieces ...string) {
		t.Helper()
		for _, piece := range pieces {
			if !slices.ContainsFunc(messages, func(m string) bool { return strings.Contains(m, piece) }) {
				t.Errorf("no %q in %q", piece, messages)
			}
		}
		if len(messages) != len(pieces) {
			t.Errorf("%q, want %d", messages, len(pieces))
		}
	}
	good := testredis.Start(t, "--appendonly", "yes")
	has(advised(t, &Store{URL: good.URL()}))
	bad := testredis.Start(t, "--maxmemory-policy", "allkeys-lru", "--replicaof", strings.Replace(good.Addr, ":", " ", 1))
	has(advised(t, &Store{URL: bad.URL()}), "allkeys-lru", "nothing on disk", "read-only replica")
	restricted := testredis.Start(t, append([]string{"--user", "dedup", "on", ">secret", "~*"}, rights...)...)
	has(advised(t, &Store{URL: "redis://dedup:secret@" + restricted.Addr}))
	cluster := testredis.StartCluster(t, "--maxmemory-policy", "volatile-lru", "--appendonly", "yes")
	has(advised(t, &Store{Address: cluster.Addrs()[:1], Cluster: true}), "volatile-lru", "volatile-lru", "volatile-lru")
	has(advised(t, &Store{URL: cluster.Nodes[0].URL()}), "volatile-lru", "add cluster")

	// A server that comes late is looked at all the same.
	good.Kill()
	time.AfterFunc(300*time.Millisecond, good.Restart)
	has(advised(t, &Store{URL: good.URL()}), "does not work yet")
}
