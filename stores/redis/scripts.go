package redis

import (
	_ "embed"

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed claim.lua
	claimSource string
	//go:embed renew.lua
	renewSource string
	//go:embed complete.lua
	completeSource string
	//go:embed release.lua
	releaseSource string
	//go:embed get.lua
	getSource string

	claimScript    = redis.NewScript(claimSource)
	renewScript    = redis.NewScript(renewSource)
	completeScript = redis.NewScript(completeSource)
	releaseScript  = redis.NewScript(releaseSource)
	getScript      = redis.NewScript(getSource)
)

// bySHA is the call of a script that the server most probably knows already.
func bySHA(s *redis.Script, key string, args []any) []any {
	return append([]any{"evalsha", s.Hash(), 1, key}, args...)
}

// bySource is the call of a script that the server has lost, or never had. That the call by SHA was answered so means
// that nothing was done: this is no repetition.
func bySource(source, key string, args []any) []any {
	return append([]any{"eval", source, 1, key}, args...)
}

func isUnknownScript(err error) bool { return redis.HasErrorPrefix(err, "NOSCRIPT") }
