package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// remedies says what to do about an error, by a piece of its text in lower case. The first that fits counts.
var remedies = []struct{ sign, remedy string }{
	{"all sentinels specified", "no sentinel knows the master: check that address names the sentinels and sentinel the master, and sentinel_username and sentinel_password"},
	{"wrongpass", "the server refuses the user name or the password: check username and password, or those in url"},
	{"invalid password", "the server refuses the password: check password, or the one in url"},
	{"noauth", "the server wants a password: set username and password, or put them into url"},
	{"without any password configured", "the server has no password for this user: remove password, or the one in url"},
	{"noperm", "the user has too few rights: docs/stores.md lists the commands and keys that it needs"},
	{"db index is out of range", "the server has no database of this number: check db, or the one in url"},
	{"select is not allowed in cluster mode", "a cluster has database 0 only: remove db"},
	{"cluster support disabled", "the server is no part of a cluster: remove cluster"},
	{"got 0 slots", "the server is no part of a cluster that serves keys: remove cluster, or create the cluster"},
	{"cluster has no nodes", "no node of the cluster answers: check address"},
	{"clusterdown", "the cluster does not serve this key: look at CLUSTER INFO"},
	{"moved ", "the server is a node of a cluster: add cluster"},
	{"ask ", "the server is a node of a cluster: add cluster"},
	{"readonly", "the server is a read-only replica: name the primary, or use sentinel"},
	{"masterdown", "the server is a replica that has lost its primary: name the primary, or use sentinel"},
	{"noreplicas", "the server has too few replicas for its min-replicas-to-write"},
	{"oom command not allowed", "the server has reached maxmemory: raise it; do not let it evict"},
	{"misconf", "the server cannot write to its disk"},
	{"loading", "the server is reading its data and will answer soon"},
	{"max number of clients", "the server has reached maxclients: raise it"},
	{"wrongtype", "another program wrote this key: choose another prefix"},
	{"first record does not look like a tls handshake", noTLS},
	{"certificate required", "the server wants a client certificate: add cert to tls"},
	{"bad certificate", "the server does not accept the client certificate: check cert in tls"},
	{"unknown certificate authority", "the server does not accept the client certificate: check cert in tls"},
	{"failed to verify certificate", "the server's certificate is not trusted: set ca, or server_name, in tls"},
	{"tls handshake", noTLS},
	{"no such host", "the name is not known: check url or address, and the name server"},
	{"server misbehaving", "the name server does not answer properly: check url or address, and the name server"},
	{"connection refused", "nothing listens there: check url or address, and that the server runs"},
	{"no such file or directory", "no server listens at this socket: check url or address, and that the server runs"},
	{"permission denied", "the socket may not be used: check its rights (unixsocketperm)"},
	{"unreachable", "the server cannot be reached: check url or address, and the network"},
	{"no route to host", "the server cannot be reached: check url or address, and the network"},
	{"dial ", "the server cannot be reached: check url or address, and the network"},
	{"eof", wantsTLS},
	{"connection reset", wantsTLS},
}

const (
	noTLS    = "the port seems to speak without TLS: remove tls, or write redis:// for rediss://"
	wantsTLS = "the server closed the connection; if it wants TLS, add tls, or write rediss:// for redis://"
	// causeLasts is for how long a failure to connect is taken for the reason why an operation found no answer.
	causeLasts = 5 * time.Second
)

// explainer adds to errors what their reader can do about it, and takes secrets out of them: some servers and proxies
// repeat the command that they refuse.
type explainer struct {
	secrets []string

	mu    sync.Mutex
	cause error // of the last failure to connect
	at    time.Time
}

// connected notes how the last attempt to connect ended.
func (e *explainer) connected(err error) {
	if errors.Is(err, context.Canceled) {
		return // given up by us
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.cause, e.at = err, time.Now()
}

// wrap returns err in words for a log.
func (e *explainer) wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if errors.Is(err, context.DeadlineExceeded) {
		e.mu.Lock()
		if e.cause != nil && time.Since(e.at) < causeLasts && !strings.Contains(text, e.cause.Error()) {
			text += "; connecting: " + e.cause.Error()
		}
		e.mu.Unlock()
	}
	remedy := remedyFor(text)
	if slices.ContainsFunc(e.secrets, func(s string) bool { return s != "" && strings.Contains(text, s) }) {
		text = "the server's words are not repeated, since they hold a secret"
	}
	if remedy != "" {
		text += " (" + remedy + ")"
	}
	return &explained{fmt.Sprintf("%s: %s", doing, text), err}
}

func remedyFor(text string) string {
	text = strings.ToLower(text)
	for _, r := range remedies {
		if strings.Contains(text, r.sign) {
			return r.remedy
		}
	}
	return ""
}

// explained is an error with other words.
type explained struct {
	text string
	err  error
}

func (e *explained) Error() string { return e.text }

// Unwrap keeps errors.Is and errors.As at work.
func (e *explained) Unwrap() error { return e.err }

var errBehind = errors.New("the replicas are behind, or there are too few of them")
