package redis

import (
	"context"
	"errors"
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
	// maxQueued bounds the operations that wait for a server that does not answer.
	maxQueued = 20_000
)

// bound sets everything that must hold whatever the URL says.
func bound(o *redis.Options) {
	for _, d := range []*time.Duration{&o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout, &o.PoolTimeout} {
		if *d <= 0 {
			*d = waitDefault
		}
		*d = min(*d, waitMax)
	}
	o.ContextTimeoutEnabled = true
	// Nothing is sent twice behind the protocol's back.
	o.MaxRetries = -1
	o.DialerRetries = 1
	// Commands that are of no use here, and that a user of few rights may not be allowed.
	o.Protocol = 2
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

// lane is how the operations of the protocol reach the server: those that run at the same time share round trips. It is
// the only place that knows of auto-pipelining, which go-redis calls experimental; with do as
// "return l.client.Process(ctx, cmd)" each has a connection of its own.
type lane struct {
	client redis.UniversalClient
	auto   *redis.AutoPipeliner
}

func newLane(client redis.UniversalClient) (*lane, error) {
	options := redis.DefaultAutoPipelineOptions()
	options.MaxQueuedCommands = maxQueued
	auto, err := client.AsyncAutoPipelineWithOptions(options)
	if err != nil {
		return nil, err
	}
	return &lane{client: client, auto: auto}, nil
}

// do returns when cmd has been answered or ctx is done. In the latter case cmd belongs to the pipeline still: it must not
// be looked at, and the server may yet carry it out.
func (l *lane) do(ctx context.Context, cmd redis.Cmder) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return l.auto.Submit(ctx, cmd).WaitContext(ctx)
}

func (l *lane) close() error { return errors.Join(l.auto.Close(), l.client.Close()) }
