package redis

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"
)

// maxQueued bounds the operations that wait for a server that does not answer.
const maxQueued = 20_000

// lane is how the operations of the protocol reach the server: those that run at the same time share round trips. It is
// the only place that knows of auto-pipelining, which go-redis calls experimental; with do as
// "l.client.Process(ctx, once{cmd})" each has a connection of its own.
//
// In a cluster each master has a pipeline of its own. go-redis' pipeline over a whole cluster is not used: one master that
// does not answer would hold up the operations on all others, and it sends a batch again, up to MaxRedirects times and
// whatever MaxRetries says, when the connection breaks after it was written. What a node refuses with MOVED or ASK was not
// applied, so that sending it again is no repetition: go-redis' redirection does that, with commands that forbid it
// everything else.
type lane struct {
	client  redis.UniversalClient
	cluster *redis.ClusterClient // nil unless the client is one
	auto    *redis.AutoPipeliner // nil in a cluster
	options *redis.AutoPipelineOptions
}

func newLane(client redis.UniversalClient) (*lane, error) {
	l := &lane{client: client, options: redis.DefaultAutoPipelineOptions()}
	l.options.MaxQueuedCommands = maxQueued
	if cluster, ok := client.(*redis.ClusterClient); ok {
		l.cluster = cluster
		return l, nil
	}
	var err error
	l.auto, err = client.AsyncAutoPipelineWithOptions(l.options)
	return l, err
}

// do sends a command on one key and returns its answer. Where ctx is done first, the server may yet carry it out.
func (l *lane) do(ctx context.Context, key string, args ...any) (any, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	auto := l.auto
	if l.cluster != nil {
		node, err := l.master(ctx, key)
		if err != nil {
			return nil, err
		}
		// A node that has just left the cluster has closed its pipeline, and has been sent nothing.
		if auto, err = node.AsyncAutoPipelineWithOptions(l.options); err != nil {
			return l.redirected(ctx, args)
		}
	}
	cmd := redis.NewCmd(ctx, args...)
	if err := auto.Submit(ctx, cmd).WaitContext(ctx); err != nil {
		if ctx.Err() != nil {
			return nil, err // cmd belongs to the pipeline still, and must not be looked at
		}
		if v, ok := answered(cmd, err); ok {
			return v, nil
		}
		if l.cluster == nil {
			return nil, err
		}
		if isRedirection(err) || errors.Is(err, redis.ErrClosed) {
			return l.redirected(ctx, args)
		}
		l.suspect(err)
		return nil, err
	}
	return cmd.Val(), nil
}

// redirected sends a command that no node has taken yet to where the cluster says it belongs.
func (l *lane) redirected(ctx context.Context, args []any) (any, error) {
	l.cluster.ReloadState(ctx)
	cmd := redis.NewCmd(ctx, args...)
	if err := l.cluster.Process(ctx, once{cmd}); err != nil {
		return nil, err
	}
	return cmd.Val(), nil
}

// follow returns the master that a MOVED or ASK names, and whether it wants to be asked first; nil if it is not known.
func (l *lane) follow(ctx context.Context, err error) (node *redis.Client, asking bool) {
	addr, asking := redis.IsAskError(err)
	if !asking {
		addr, _ = redis.IsMovedError(err)
	}
	nodes, err := l.masters(ctx) // which looks at the cluster anew
	if i := slices.IndexFunc(nodes, func(n *redis.Client) bool { return n.Options().Addr == addr }); err == nil && i >= 0 {
		return nodes[i], asking
	}
	return nil, false
}

// suspect asks for the cluster's shape anew where err may come of a master that has been replaced: go-redis does so only
// when it is redirected, and a dead server redirects nobody.
func (l *lane) suspect(err error) {
	var answer redis.Error
	if l.cluster != nil && (!errors.As(err, &answer) || redis.IsReadOnlyError(err) || redis.IsClusterDownError(err)) {
		l.cluster.ReloadState(context.Background())
	}
}

// master returns the client of the server that holds key.
func (l *lane) master(ctx context.Context, key string) (*redis.Client, error) {
	if l.cluster != nil {
		return l.cluster.MasterForKey(ctx, key)
	}
	return l.client.(*redis.Client), nil
}

func (l *lane) close() error {
	if l.auto != nil {
		return errors.Join(l.auto.Close(), l.client.Close())
	}
	return l.client.Close()
}

// once is a command that go-redis must not send again by itself, except after an answer that says it was not carried out.
type once struct{ *redis.Cmd }

// NoRetry implements [redis.Cmder].
func (once) NoRetry() bool { return true }

// answered tells whether cmd has its answer although its error says that the connection failed: go-redis gives the error
// of a pipeline that breaks to the commands that were answered before, too.
func answered(cmd *redis.Cmd, err error) (any, bool) {
	var broken net.Error
	if !errors.As(err, &broken) && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, false
	}
	switch v := cmd.Val().(type) {
	case int64:
		return v, true
	case []any:
		return v, v != nil
	}
	return nil, false
}

func isRedirection(err error) bool {
	_, moved := redis.IsMovedError(err)
	_, ask := redis.IsAskError(err)
	return moved || ask
}

// masters returns the clients of all servers that hold records, in a stable order.
func (l *lane) masters(ctx context.Context) ([]*redis.Client, error) {
	if l.cluster == nil {
		return []*redis.Client{l.client.(*redis.Client)}, nil
	}
	var mu sync.Mutex
	var nodes []*redis.Client
	err := l.cluster.ForEachMaster(ctx, func(_ context.Context, node *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		nodes = append(nodes, node)
		return nil
	})
	slices.SortFunc(nodes, func(a, b *redis.Client) int { return cmp.Compare(a.Options().Addr, b.Options().Addr) })
	return nodes, err
}
