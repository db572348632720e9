//go:build unix

package redis

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
	"github.com/webhook-dedup/caddy-webhook-dedup/claim/claimtest"
	"github.com/webhook-dedup/caddy-webhook-dedup/internal/testredis"
)

// holdToContract runs the contract, and looks whether something was left that stays for ever.
func holdToContract(t *testing.T, m *Store) {
	t.Helper()
	shared := openStore(t, m, zap.NewNop())
	claimtest.Run(t, claimtest.Harness{Open: func(*testing.T) claim.Store { return shared }})

	n := 0
	nodes, err := shared.lane.masters(background)
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range nodes {
		for it := node.Scan(background, 0, "*", 1000).Iterator(); it.Next(background); n++ {
			if !strings.Contains(it.Val(), ":1:test:p") {
				t.Errorf("key %q", it.Val())
			}
			if ttl := node.PTTL(background, it.Val()).Val(); ttl == -1 {
				t.Errorf("%q has no expiry", it.Val())
			}
		}
	}
	if n < 500 {
		t.Errorf("only %d keys were looked at", n)
	}
}

func TestContract(t *testing.T) {
	server := testredis.Start(t)
	holdToContract(t, &Store{URL: server.URL()})
	holdToContract(t, &Store{Address: []string{server.Addr}, DB: "3", Prefix: "shop"})
}

func TestContractWithReplicas(t *testing.T) {
	server := testredis.Start(t, "--repl-diskless-sync-delay", "0")
	testredis.Start(t, "--replicaof", strings.Replace(server.Addr, ":", " ", 1))
	waitForReplicas(t, server, 1)
	holdToContract(t, &Store{URL: server.URL(), Replicas: replicate(1, "200ms")})
}

func TestContractUnixSocket(t *testing.T) {
	dir, err := os.MkdirTemp("", "redis") // t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	testredis.Start(t, "--unixsocket", socket, "--requirepass", "secret")
	holdToContract(t, &Store{URL: "unix://:secret@" + socket + "?db=2"})
	for _, address := range []string{socket, "unix/" + socket} {
		s := openStore(t, &Store{Address: []string{address}, Password: "secret"}, zap.NewNop())
		mustClaim(t, s, address, claim.NewToken(), claim.Granted)
	}
}

func TestContractTLS(t *testing.T) {
	certs := testredis.NewCertificates(t)
	server := testredis.StartTLS(t, certs)
	holdToContract(t, &Store{Address: []string{server.Addr}, TLS: &TLS{CA: certs.CA, Cert: certs.Cert, Key: certs.Key}})

	named := &Store{URL: server.URL(), TLS: &TLS{CA: certs.CA, Cert: certs.Cert, Key: certs.Key, ServerName: "redis.test"}}
	mustClaim(t, openStore(t, named, zap.NewNop()), "k", claim.NewToken(), claim.Granted)
}

func TestContractSentinel(t *testing.T) {
	group := testredis.StartSentinel(t, testredis.Auth{Password: "data", SentinelPassword: "watch"})
	holdToContract(t, &Store{
		Address: []string{strings.Join(group.Addrs(), ", ")}, Sentinel: testredis.MasterName,
		Password: "data", SentinelPassword: "watch", DB: "1",
	})
}

func TestContractCluster(t *testing.T) {
	cluster := testredis.StartCluster(t)
	holdToContract(t, &Store{Address: cluster.Addrs()[:2], Cluster: true})
	holdToContract(t, &Store{URL: cluster.Nodes[4].URL(), Cluster: true, Prefix: "waiting", Replicas: replicate(1, "200ms")})
}

// TestClusterUser: the rights that docs/stores.md lists are enough in a cluster.
func TestClusterUser(t *testing.T) {
	cluster := testredis.StartCluster(t, append(append([]string{
		"--user", "dedup", "on", ">secret", "~webhook_dedup:*",
	}, rights...), "+cluster|slots")...)
	s := openStore(t, &Store{Address: cluster.Addrs()[:1], Cluster: true, Username: "dedup", Password: "secret"}, zap.NewNop())
	useEverything(t, s)
	if _, ok := s.client.(*redis.ClusterClient); !ok {
		t.Errorf("the client is a %T", s.client)
	}
}
