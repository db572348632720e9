package claim

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// ErrArgument is in every error that a Check method returns: the call was wrong and changed nothing.
var ErrArgument = errors.New("invalid argument")

// MaxKey is the greatest length of a key in bytes that every store takes.
const MaxKey = 16 << 10

// Check reports the first argument that breaks its bounds. Stores call it before anything else.
func (c Claim) Check() error {
	return cmp.Or(checkKey(c.Key), checkLease(c.Lease, c.Keep))
}

// Check reports the first argument that breaks its bounds. Stores call it before anything else.
func (r Renewal) Check() error {
	return cmp.Or(checkKey(r.Key), checkLease(r.Lease, r.Keep))
}

// Check reports the first argument that breaks its bounds. Stores call it before anything else.
func (c Completion) Check() error {
	return cmp.Or(checkKey(c.Key), checkDuration("ttl", c.TTL), checkStatus(c.Status))
}

// Check reports the first argument that breaks its bounds. Stores call it before anything else.
func (r Release) Check() error {
	return cmp.Or(checkKey(r.Key), checkDuration("keep", r.Keep), checkStatus(r.Status))
}

// CheckKey reports whether key can be the key of a record.
func CheckKey(key string) error { return checkKey(key) }

func checkKey(key string) error {
	if key == "" {
		return fmt.Errorf("%w: the key is empty", ErrArgument)
	}
	if len(key) > MaxKey {
		return fmt.Errorf("%w: the key has %d bytes, more than %d", ErrArgument, len(key), MaxKey)
	}
	return nil
}

func checkLease(lease, keep time.Duration) error {
	if err := checkDuration("lease", lease); err != nil {
		return err
	}
	if keep < lease {
		return fmt.Errorf("%w: keep is %s, shorter than the lease of %s", ErrArgument, keep, lease)
	}
	return nil
}

func checkDuration(name string, d time.Duration) error {
	if d < time.Millisecond {
		return fmt.Errorf("%w: %s is %s, shorter than a millisecond", ErrArgument, name, d)
	}
	return nil
}

func checkStatus(status int) error {
	if status < 0 || status > 999 {
		return fmt.Errorf("%w: status is %d, not between 0 and 999", ErrArgument, status)
	}
	return nil
}
