package redis

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/redis/go-redis/v9"
)

// replicaTimeoutMax leaves the reading of the answer a fifth of the longest wait.
const replicaTimeoutMax = waitMax * 4 / 5

// settings is a configuration with its placeholders and files read. Two stores are the same where all of it is.
type settings struct {
	URL                                string
	Address                            []string
	Username, Password                 string
	DB                                 int
	TLS                                *tlsSettings
	Sentinel                           string
	SentinelUsername, SentinelPassword string
	Cluster                            bool
	Prefix                             string
	ReplicaCount                       int
	ReplicaTimeout                     time.Duration
}

type tlsSettings struct {
	CA, Cert, Key []byte
	ServerName    string
}

// secrets are the texts that must not be shown.
func (s settings) secrets() []string {
	all := []string{s.URL, s.Password, s.SentinelPassword}
	if u, err := url.Parse(s.URL); err == nil {
		if password, set := u.User.Password(); set {
			all = append(all, password)
		}
	}
	return slices.DeleteFunc(all, func(text string) bool { return text == "" })
}

// resolve replaces placeholders, reads files and checks what belongs together. Its errors never say what a value was: a
// secret may stand in any of them.
func (s *Store) resolve() (settings, error) {
	r := settings{Cluster: s.Cluster}
	var db, addresses string
	for _, field := range []struct {
		name, from string
		to         *string
	}{
		{"url", s.URL, &r.URL},
		{"address", strings.Join(s.Address, ","), &addresses},
		{"username", s.Username, &r.Username},
		{"password", s.Password, &r.Password},
		{"db", s.DB, &db},
		{"sentinel", s.Sentinel, &r.Sentinel},
		{"sentinel_username", s.SentinelUsername, &r.SentinelUsername},
		{"sentinel_password", s.SentinelPassword, &r.SentinelPassword},
		{"prefix", s.Prefix, &r.Prefix},
	} {
		var err error
		if *field.to, err = expand(field.name, field.from); err != nil {
			return r, err
		}
	}
	r.Address = strings.FieldsFunc(addresses, func(c rune) bool { return c == ',' || c == ' ' })
	if r.Prefix == "" {
		r.Prefix = defaultPrefix
	}
	if db != "" {
		n, err := strconv.Atoi(db)
		if err != nil || n < 0 {
			return r, errors.New("db is no number of a database; allowed are 0, 1, 2 …")
		}
		r.DB = n
	}
	if s.Replicas != nil {
		if err := s.Replicas.check(); err != nil {
			return r, err
		}
		r.ReplicaCount, r.ReplicaTimeout = s.Replicas.Count, time.Duration(s.Replicas.Timeout)
	}
	if err := r.check(); err != nil {
		return r, err
	}
	return r, s.TLS.resolve(&r)
}

// expand replaces the placeholders of a value.
func expand(name, value string) (string, error) {
	text, err := caddy.NewReplacer().ReplaceOrErr(value, true, true)
	if err == nil {
		return text, nil
	}
	if strings.Contains(err.Error(), "{env.") || strings.Contains(err.Error(), "{file.") {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	// What else stands in braces may be a part of a password.
	return "", fmt.Errorf("%s: something in braces is no placeholder that has a value here; allowed are {env.<name>} and {file.<path>}", name)
}

// check finds what contradicts itself.
func (r *settings) check() error {
	switch {
	case r.URL == "" && len(r.Address) == 0:
		return errors.New("url or address is missing, as in url {env.REDIS_URL}")
	case r.URL != "" && len(r.Address) > 0:
		return errors.New("url and address exclude each other: write either url, or address with username, password, db and tls")
	case r.URL != "" && (r.Username != "" || r.Password != "" || r.DB != 0):
		return errors.New("username, password and db belong into the url, or to address; allowed beside url are tls, cluster, prefix, replicas")
	case r.Cluster && r.Sentinel != "":
		return errors.New("cluster and sentinel exclude each other: a cluster needs no sentinels")
	case r.URL != "" && r.Sentinel != "":
		return errors.New("sentinel needs address, with the host:port of the sentinels, in place of url")
	case r.Cluster && r.DB != 0:
		return errors.New("cluster with db: a cluster has database 0 only; remove db")
	case r.Sentinel == "" && (r.SentinelUsername != "" || r.SentinelPassword != ""):
		return errors.New("sentinel_username and sentinel_password need sentinel, the name of the master")
	case len(r.Address) > 1 && !r.Cluster && r.Sentinel == "":
		return errors.New("address names several servers; allowed is one, or several with cluster or with sentinel")
	}
	for i, address := range r.Address {
		address = strings.TrimPrefix(address, "unix/")
		if strings.HasPrefix(address, "/") && !r.Cluster && r.Sentinel == "" {
			r.Address[i] = address
			continue
		}
		host, port, err := net.SplitHostPort(address)
		if n, wrong := strconv.Atoi(port); err != nil || host == "" || wrong != nil || n < 1 || n > 65535 || strings.ContainsAny(host, "/@") {
			return errors.New("address is no host:port; allowed is also, for a single server, the absolute path of a unix socket, and a URL stands behind url")
		}
	}
	return nil
}

func (r *Replicas) check() error {
	if r.Count < 1 || r.Count > 100 {
		return errors.New("replicas: the number is out of range; allowed are 1 to 100")
	}
	if t := time.Duration(r.Timeout); t < time.Millisecond || t > replicaTimeoutMax {
		return fmt.Errorf("replicas: the timeout is out of range; allowed are 1ms to %s", replicaTimeoutMax)
	}
	return nil
}

// resolve reads the files, so that a certificate that was replaced makes another store.
func (t *TLS) resolve(r *settings) error {
	if t == nil {
		return nil
	}
	r.TLS = new(tlsSettings)
	var err error
	if r.TLS.ServerName, err = expand("tls: server_name", t.ServerName); err != nil {
		return err
	}
	for _, file := range []struct {
		name, path string
		to         *[]byte
	}{{"ca", t.CA, &r.TLS.CA}, {"cert", t.Cert, &r.TLS.Cert}, {"the key of cert", t.Key, &r.TLS.Key}} {
		path, err := expand("tls: "+file.name, file.path)
		if err != nil {
			return err
		}
		if path == "" {
			continue
		}
		if *file.to, err = os.ReadFile(path); err != nil {
			return fmt.Errorf("tls: reading the file of %s: %w", file.name, err)
		}
	}
	if (r.TLS.Cert == nil) != (r.TLS.Key == nil) {
		return errors.New("tls: cert and key are needed together")
	}
	_, err = r.TLS.config()
	return err
}

// config makes what crypto/tls wants.
func (t *tlsSettings) config() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.CA != nil {
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(t.CA) {
			return nil, errors.New("tls: the file of ca has no certificate; it must be PEM, as in -----BEGIN CERTIFICATE-----")
		}
	}
	if t.Cert != nil {
		pair, err := tls.X509KeyPair(t.Cert, t.Key)
		if err != nil { // which says what is wrong, and nothing of the key
			return nil, fmt.Errorf("tls: the files of cert cannot be used: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// options makes what go-redis wants.
func (r *settings) options() (*redis.UniversalOptions, error) {
	o := &redis.UniversalOptions{Addrs: r.Address, Username: r.Username, Password: r.Password, DB: r.DB}
	if r.URL != "" {
		parsed, err := parseURL(r.URL)
		if err != nil {
			return nil, err
		}
		if r.Cluster && (parsed.DB != 0 || parsed.Network == "unix") {
			return nil, errors.New("cluster: the url may name neither a database other than 0 nor a socket")
		}
		if r.TLS != nil && parsed.TLSConfig == nil {
			return nil, errors.New("tls needs a url that begins with rediss://")
		}
		o = fromOptions(parsed)
	}
	if r.TLS != nil {
		config, err := r.TLS.config()
		if err != nil {
			return nil, err
		}
		o.TLSConfig = config
	}
	o.MasterName, o.SentinelUsername, o.SentinelPassword = r.Sentinel, r.SentinelUsername, r.SentinelPassword
	o.IsClusterMode = r.Cluster
	bound(o)
	if r.ReplicaCount > 0 {
		// An answer that WAIT holds back is no dead connection.
		o.ReadTimeout = max(o.ReadTimeout, r.ReplicaTimeout*5/4)
		o.PoolSize = max(o.PoolSize, poolWithReplicas)
	}
	return o, nil
}

var schemes = []string{"redis", "rediss", "unix"}

// parseURL never says what the URL was: it may hold a password, even where it is no URL at all. That is also why the
// errors of the parsers are not passed on.
func parseURL(target string) (*redis.Options, error) {
	u, err := url.Parse(target)
	if err != nil {
		return nil, errors.New("url is not a URL; percent-encode special characters in the user name and the password")
	}
	if !slices.Contains(schemes, u.Scheme) {
		return nil, fmt.Errorf("url is of no known kind; allowed are %s://", strings.Join(schemes, "://, "))
	}
	o, err := redis.ParseURL(target)
	if err != nil {
		return nil, errors.New("url cannot be used; after the host comes nothing but the number of a database, and after ? only options that go-redis knows")
	}
	if o.TLSConfig != nil && o.TLSConfig.InsecureSkipVerify {
		return nil, errors.New("url: skip_verify is not allowed; name the authority that signed the server's certificate by tls { ca <file> }")
	}
	if o.TLSConfig != nil {
		o.TLSConfig.ServerName = "" // in a cluster it differs from node to node; see dialer
	}
	return o, nil
}
