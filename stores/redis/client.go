package redis

import (
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

const (
	// waitDefault and waitMax bound each wait for the server (connecting, writing, reading, a free connection), whatever
	// the URL says. An operation ends with its context before that; what these decide is how long a connection that has
	// gone dead holds up the operations behind it.
	waitDefault = time.Second
	waitMax     = 5 * time.Second
)

// bound sets everything that must hold whatever the URL says, for every kind of client: the clients of a cluster's nodes,
// of the sentinels and of the master that these name take it over.
func bound(o *redis.UniversalOptions) {
	for _, d := range []*time.Duration{&o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout, &o.PoolTimeout} {
		if *d <= 0 {
			*d = waitDefault
		}
		*d = min(*d, waitMax)
	}
	o.ContextTimeoutEnabled = true
	// Nothing is sent twice behind the protocol's back. See [lane] for what a cluster makes of it.
	o.MaxRetries = -1
	o.DialerRetries = 1
	// Commands that are of no use here, and that a user of few rights may not be allowed.
	o.Protocol = 2
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	// Operations go to masters only: a replica may be behind.
	o.ReadOnly, o.RouteByLatency, o.RouteRandomly = false, false, false
}

// newClient makes the client that the options ask for. It does not connect.
func newClient(o *redis.UniversalOptions) redis.UniversalClient {
	switch {
	case o.MasterName != "":
		return redis.NewFailoverClient(o.Failover())
	case o.IsClusterMode:
		cluster := o.Cluster()
		cluster.DisableRoutingPolicies = true // which would ask for COMMAND, and a user of few rights may not
		return redis.NewClusterClient(cluster)
	}
	return redis.NewClient(o.Simple())
}

// fromOptions takes over what a URL can say.
func fromOptions(o *redis.Options) *redis.UniversalOptions {
	return &redis.UniversalOptions{
		Addrs: []string{o.Addr}, Username: o.Username, Password: o.Password, DB: o.DB, ClientName: o.ClientName, TLSConfig: o.TLSConfig,
		DialTimeout: o.DialTimeout, ReadTimeout: o.ReadTimeout, WriteTimeout: o.WriteTimeout, PoolTimeout: o.PoolTimeout,
		PoolFIFO: o.PoolFIFO, PoolSize: o.PoolSize, MinIdleConns: o.MinIdleConns, MaxIdleConns: o.MaxIdleConns,
		MaxActiveConns: o.MaxActiveConns, MaxConcurrentDials: o.MaxConcurrentDials, PipelinePoolSize: o.PipelinePoolSize,
		ConnMaxIdleTime: o.ConnMaxIdleTime, ConnMaxLifetime: o.ConnMaxLifetime, ConnMaxLifetimeJitter: o.ConnMaxLifetimeJitter,
		ReadBufferSize: o.ReadBufferSize, WriteBufferSize: o.WriteBufferSize,
		PipelineReadBufferSize: o.PipelineReadBufferSize, PipelineWriteBufferSize: o.PipelineWriteBufferSize,
	}
}
