// Package postgres is the store for those who have a PostgreSQL already: one table in it, which several Caddy processes
// share and a person can query.
package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/zap"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
)

func init() {
	caddy.RegisterModule(Store{})
}

const (
	defaultTable          = "webhook_dedup_events"
	defaultMaxConnections = 10
)

// Store keeps the records of events in a table of a PostgreSQL 12 or later, so that any number of Caddy processes share
// them. The table is made on first use. It works through PgBouncer in each of its pool modes but `statement`.
type Store struct {
	// Where the database is: `postgres://user:password@host:5432/database?sslmode=verify-full`, or the same as
	// `host=… user=… password=… dbname=…`. Placeholders such as `{env.POSTGRES_DSN}` are replaced when the configuration is
	// loaded. Default: none, it is required.
	DSN string `json:"dsn,omitempty"`

	// The table, with or without a schema: letters, digits and underscores, upper and lower case being different. Default:
	// `webhook_dedup_events`, in the first schema of the user's search path.
	Table string `json:"table,omitempty"`

	// How many connections each Caddy process opens at most. Operations wait for a free one. Default: `10`.
	MaxConnections int `json:"max_connections,omitempty"`

	// Whether the table is made where it does not exist. Without it an administrator makes the table, by the statements in
	// the documentation. Default: `true`.
	Create *bool `json:"create,omitempty"`

	config *pgxpool.Config
	dsn    string
	table  string // quoted
}

// CaddyModule returns the Caddy module information.
func (Store) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "webhook_dedup.stores.postgres",
		New: func() caddy.Module { return new(Store) },
	}
}

// UnmarshalCaddyfile sets the store up from its block. Syntax:
//
//	postgres {
//		dsn             <dsn>
//		table           [<schema>.]<name>
//		max_connections <number>
//		create          on|off
//	}
func (s *Store) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the name of the store
	if d.NextArg() {
		return d.Err("postgres takes its settings in a block, as in postgres { dsn {env.POSTGRES_DSN} }") // ArgErr would repeat the argument
	}
	seen := map[string]bool{}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		name := d.Val()
		switch name {
		case "dsn", "table", "max_connections", "create":
		default:
			if strings.Contains(name, "://") || strings.Contains(name, "=") {
				return d.Err("a DSN stands behind dsn, as in dsn {env.POSTGRES_DSN}")
			}
			return d.Errf("unrecognized subdirective %q; allowed are dsn, table, max_connections, create", name)
		}
		if seen[name] {
			return d.Errf("%s is already set", name)
		}
		seen[name] = true
		var value string
		if !d.AllArgs(&value) {
			if name == "dsn" {
				return d.Err("dsn takes one argument; quote it if it has spaces") // not ArgErr, which repeats the line's last word: it may be a secret
			}
			return d.Errf("%s takes one argument", name)
		}
		if value == "" {
			return d.Errf("%s is empty", name)
		}
		switch name {
		case "dsn":
			s.DSN = value
		case "table":
			s.Table = value
		case "max_connections":
			n, err := strconv.Atoi(value)
			if err != nil || n < 1 {
				return d.Errf("max_connections is %q; allowed are numbers from 1", value)
			}
			s.MaxConnections = n
		case "create":
			if value != "on" && value != "off" {
				return d.Errf("create is %q; allowed are on, off", value)
			}
			on := value == "on"
			s.Create = &on
		}
	}
	return nil
}

// Provision reads the configuration. It does not connect.
func (s *Store) Provision(caddy.Context) error {
	if s.DSN == "" {
		return errors.New("dsn is missing, as in dsn {env.POSTGRES_DSN}")
	}
	var err error
	if s.dsn, err = caddy.NewReplacer().ReplaceOrErr(s.DSN, true, true); err != nil {
		if strings.Contains(err.Error(), "{env.") || strings.Contains(err.Error(), "{file.") {
			return fmt.Errorf("dsn: %w", err)
		}
		// What else stands in braces may be a part of a password.
		return errors.New("dsn: something in braces is no placeholder that has a value here; allowed are {env.<name>} and {file.<path>}")
	}
	table := defaultTable
	if s.Table != "" {
		if table, err = caddy.NewReplacer().ReplaceOrErr(s.Table, true, true); err != nil {
			return fmt.Errorf("table %q: %w", s.Table, err)
		}
	}
	if s.table, err = quote(table); err != nil {
		return err
	}
	if s.MaxConnections < 0 || s.MaxConnections > 10_000 {
		return fmt.Errorf("max_connections is %d; allowed are 1 to 10000", s.MaxConnections)
	}
	s.config, err = parseDSN(s.dsn)
	if err != nil {
		return err
	}
	s.config.MaxConns = defaultMaxConnections
	if s.MaxConnections > 0 {
		s.config.MaxConns = int32(s.MaxConnections)
	}
	return nil
}

// connectTimeout bounds an attempt to connect that nobody waits for any more, unless the DSN sets another.
const connectTimeout = 5 * time.Second

// parseDSN never says what the DSN was: it may hold a password, even where it is no DSN at all. That is also why the
// errors of the parser are not passed on.
func parseDSN(dsn string) (*pgxpool.Config, error) {
	c, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, errors.New("dsn cannot be used; it is postgres://user:password@host:port/database with special characters " +
			"percent-encoded, or host=… user=… password=… dbname=…, and the files that it names must be readable")
	}
	if c.ConnConfig.DefaultQueryExecMode == pgx.QueryExecModeDescribeExec {
		// Behind PgBouncer it may run the statement of somebody else.
		return nil, errors.New("dsn: default_query_exec_mode=describe_exec cannot be used; allowed are cache_statement, cache_describe, exec, simple_protocol")
	}
	if c.ConnConfig.ConnectTimeout <= 0 {
		c.ConnConfig.ConnectTimeout = connectTimeout
	}
	if c.ConnConfig.RuntimeParams["application_name"] == "" {
		c.ConnConfig.RuntimeParams["application_name"] = "caddy webhook_dedup"
	}
	return c, nil
}

// Identity is the key by which routes and configurations share one open store. It shows neither server nor password.
func (s *Store) Identity() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %s %d %t", s.dsn, s.table, s.config.MaxConns, s.creates()))
	return "postgres:" + hex.EncodeToString(sum[:])
}

func (s *Store) creates() bool { return s.Create == nil || *s.Create }

// OpenStore returns the store; it connects with the first operation.
func (s *Store) OpenStore(logger *zap.Logger) (claim.Store, error) {
	pool, err := pgxpool.NewWithConfig(context.Background(), s.config.Copy())
	if err != nil {
		return nil, fmt.Errorf("opening postgres: %w", err)
	}
	return open(pool, s.table, s.creates(), pruneEvery, logger), nil
}

// Interface guards
var (
	_ caddy.Provisioner     = (*Store)(nil)
	_ caddyfile.Unmarshaler = (*Store)(nil)
)
