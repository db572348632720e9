package redis

import (
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

// UnmarshalCaddyfile sets the store up from its block. No error repeats an argument: it may be a secret that stands in the
// wrong place. Syntax:
//
//	redis {
//		url               <url>
//		address           <host:port or path...>
//		username          <name>
//		password          <text>
//		db                <number>
//		tls {
//			ca          <file>
//			cert        <file> <key file>
//			server_name <name>
//		}
//		sentinel          <master>
//		sentinel_username <name>
//		sentinel_password <text>
//		cluster
//		prefix            <text>
//		replicas          <n> <timeout>
//	}
func (s *Store) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the name of the store
	if d.NextArg() {
		return d.Err("redis takes its settings in a block, as in redis { url {env.REDIS_URL} }") // ArgErr would repeat the argument
	}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		var err error
		switch name := d.Val(); name {
		case "url":
			err = oneText(d, &s.URL)
		case "address":
			more := d.RemainingArgs()
			if len(more) == 0 {
				return d.Err("address takes one argument or more, as in address redis.example.com:6379")
			}
			s.Address = append(s.Address, more...)
		case "username":
			err = oneText(d, &s.Username)
		case "password":
			err = oneText(d, &s.Password)
		case "db":
			err = oneText(d, &s.DB)
		case "tls":
			err = s.unmarshalTLS(d)
		case "sentinel":
			err = oneText(d, &s.Sentinel)
		case "sentinel_username":
			err = oneText(d, &s.SentinelUsername)
		case "sentinel_password":
			err = oneText(d, &s.SentinelPassword)
		case "cluster":
			if d.NextArg() {
				return d.Err("cluster takes no argument: its nodes stand behind address")
			}
			s.Cluster = true
		case "prefix":
			err = oneText(d, &s.Prefix)
		case "replicas":
			err = s.unmarshalReplicas(d)
		default:
			if strings.Contains(name, "://") {
				return d.Err("a URL stands behind url, as in url {env.REDIS_URL}")
			}
			return d.Errf("unrecognized subdirective %q; allowed are url, address, username, password, db, tls, sentinel, "+
				"sentinel_username, sentinel_password, cluster, prefix, replicas", name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// oneText reads the one argument of a line.
func oneText(d *caddyfile.Dispenser, field *string) error {
	name := d.Val()
	if *field != "" {
		return d.Errf("%s is already set", name)
	}
	if !d.AllArgs(field) {
		return d.Errf("%s takes one argument", name) // not ArgErr, which repeats the line's last word: it may be a secret
	}
	if *field == "" {
		return d.Errf("%s is empty", name)
	}
	return nil
}

func (s *Store) unmarshalTLS(d *caddyfile.Dispenser) error {
	if s.TLS != nil {
		return d.Err("tls is already set")
	}
	if d.NextArg() {
		return d.Err("tls takes its settings in a block, or none; allowed are ca, cert, server_name")
	}
	s.TLS = new(TLS)
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		var err error
		switch name := d.Val(); name {
		case "ca":
			err = oneText(d, &s.TLS.CA)
		case "cert":
			if s.TLS.Cert != "" {
				return d.Err("cert is already set")
			}
			if !d.AllArgs(&s.TLS.Cert, &s.TLS.Key) || s.TLS.Cert == "" || s.TLS.Key == "" {
				return d.Err("cert takes two arguments, the file of the certificate and that of its key")
			}
		case "server_name":
			err = oneText(d, &s.TLS.ServerName)
		default:
			return d.Errf("unrecognized subdirective %q; allowed in tls are ca, cert, server_name", name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) unmarshalReplicas(d *caddyfile.Dispenser) error {
	const usage = "replicas takes a number and a duration, as in replicas 1 200ms"
	if s.Replicas != nil {
		return d.Err("replicas is already set")
	}
	var count, timeout string
	if !d.AllArgs(&count, &timeout) {
		return d.Err(usage)
	}
	n, err := strconv.Atoi(count)
	if err != nil {
		return d.Err(usage)
	}
	wait, err := caddy.ParseDuration(timeout)
	if err != nil {
		return d.Err(usage)
	}
	s.Replicas = &Replicas{Count: n, Timeout: caddy.Duration(wait)}
	if err := s.Replicas.check(); err != nil {
		return d.Err(err.Error())
	}
	return nil
}
