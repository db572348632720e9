package redis

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"
)

// dialer connects to servers and sentinels. It is go-redis' own except that it tells a handshake that got no answer from a
// server that is not there, and that it remembers why the last attempt failed: an operation ends with its context, often
// before that is known.
type dialer struct {
	timeout time.Duration
	tls     *tls.Config // nil without TLS
	errors  *explainer
}

func (d *dialer) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	conn, err := d.connect(ctx, network, addr)
	d.errors.connected(err)
	return conn, err
}

func (d *dialer) connect(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := (&net.Dialer{KeepAlive: time.Minute}).DialContext(ctx, network, addr)
	if err != nil || d.tls == nil {
		return conn, err
	}
	config := d.tls
	if config.ServerName == "" {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			host = addr
		}
		config = config.Clone()
		config.ServerName = host
	}
	secure := tls.Client(conn, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, fmt.Errorf("TLS handshake with %s: %w", addr, err)
	}
	return secure, nil
}
