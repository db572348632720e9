package redis

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"
)

const (
	// adviceTimeout bounds one look at the servers.
	adviceTimeout = 3 * time.Second
	// adviceFirst and adviceLast are the pauses between looks at servers that do not answer.
	adviceFirst, adviceLast = time.Second, time.Minute
)

// adviser looks once, behind the back of the deliveries, whether the servers are set up to keep what they are told. It
// goes on until they have answered or the store is closed.
type adviser struct {
	cancel context.CancelFunc
	done   sync.WaitGroup
}

func (a *adviser) start(s *store, log *zap.Logger) {
	ctx, cancel := context.WithCancel(context.Background())
	a.cancel = cancel
	a.done.Go(func() {
		for pause := adviceFirst; ; pause = min(2*pause, adviceLast) {
			err := s.advise(ctx, log)
			if err == nil || ctx.Err() != nil {
				return
			}
			if pause == adviceFirst {
				log.Warn("redis does not work yet; deliveries are answered by on_store_error until it does",
					zap.Error(s.errors.wrap("asking redis about its settings", err)))
			}
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return
			}
		}
	})
}

func (a *adviser) stop() {
	if a.cancel != nil {
		a.cancel()
	}
}

func (a *adviser) wait() { a.done.Wait() }

// advise warns of every server whose settings may lose records. That the user may not ask for them is no error.
func (s *store) advise(ctx context.Context, log *zap.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, adviceTimeout)
	defer cancel()
	nodes, err := s.lane.masters(ctx)
	if err != nil {
		if redis.IsPermissionError(err) {
			return nil
		}
		return err
	}
	for _, node := range nodes {
		info, err := node.Info(ctx).Result()
		if redis.IsPermissionError(err) {
			continue
		} else if err != nil {
			return err
		}
		save, err := node.ConfigGet(ctx, "save").Result()
		if err != nil {
			save = nil // not allowed, or a managed server that has no CONFIG
		}
		log := log
		if addr := node.Options().Addr; s.lane.cluster != nil {
			log = log.With(zap.String("node", addr))
		}
		for _, warning := range warnings(parseInfo(info), save, s.lane.cluster != nil) {
			log.Warn(warning)
		}
	}
	return nil
}

// parseInfo reads the answer to INFO.
func parseInfo(text string) map[string]string {
	info := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	return info
}

// warnings judges a server. What it does not say is taken to be right.
func warnings(info, config map[string]string, cluster bool) (found []string) {
	if policy := info["maxmemory_policy"]; strings.HasPrefix(policy, "allkeys-") || strings.HasPrefix(policy, "volatile-") {
		found = append(found, "redis may evict records when its memory is full (maxmemory-policy "+policy+
			"): an evicted event is processed again; set maxmemory-policy noeviction")
	}
	save, known := config["save"]
	if info["aof_enabled"] == "0" && known && save == "" {
		found = append(found, "redis keeps nothing on disk: a restart forgets every event; set appendonly yes")
	}
	if version := info["redis_version"]; version != "" && older(version, 6, 2) {
		found = append(found, "redis "+version+" is older than 6.2, the oldest that this store is made for")
	}
	if info["role"] == "slave" && info["slave_read_only"] != "0" {
		found = append(found, "redis is a read-only replica, where nothing can be claimed: name the primary, or use sentinel")
	}
	if info["cluster_enabled"] == "1" && !cluster {
		found = append(found, "redis is a node of a cluster, and most keys belong to other nodes: add cluster to the store's settings")
	}
	return found
}

// older reports whether version is before major.minor. What cannot be read is not.
func older(version string, major, minor int) bool {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return false
	}
	a, errA := strconv.Atoi(parts[0])
	b, errB := strconv.Atoi(parts[1])
	return errA == nil && errB == nil && (a < major || a == major && b < minor)
}
