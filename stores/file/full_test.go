//go:build unix

package file

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
)

// TestFileCannotGrow lets a real write fail: the child's files may not grow any further for a while.
func TestFileCannotGrow(t *testing.T) {
	path := eventFile(t)
	_, lines := startChild(t, "full", path)
	last := ""
	for lines.Scan() {
		last = lines.Text()
	}
	if last != "recovered" {
		t.Fatalf("child said %q", last)
	}
	s := openTest(t, path, options{})
	defer s.Close()
	for i := range 3 {
		mustClaim(t, s, fmt.Sprint("small_", i), claim.NewToken(), claim.Duplicate)
	}
	mustClaim(t, s, "large", claim.NewToken(), claim.Duplicate)
}

// fullDisk runs in the child.
func fullDisk(s *store) {
	fail := func(what string, err error) {
		fmt.Println(what, err)
		os.Exit(1)
	}
	signal.Ignore(syscall.SIGXFSZ)
	for i := range 3 {
		if _, err := s.Complete(background, claim.Completion{Key: fmt.Sprint("small_", i), Token: claim.NewToken(), TTL: time.Hour}); err != nil {
			fail("complete:", err)
		}
	}
	info, err := os.Stat(s.path)
	if err != nil {
		fail("stat:", err)
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		fail("getrlimit:", err)
	}
	low := limit
	low.Cur = uint64(info.Size())
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &low); err != nil {
		fail("setrlimit:", err)
	}
	large := claim.Completion{Key: "large", Token: claim.NewToken(), TTL: time.Hour, Response: make([]byte, 1<<20)}
	if _, err = s.Complete(background, large); err == nil {
		fail("a file that cannot grow took a megabyte", nil)
	}
	if _, _, err := s.Claim(background, ask("new", claim.NewToken())); err == nil {
		fail("a claim was granted that cannot be written", nil)
	}
	if _, _, err := s.Claim(background, ask("small_0", claim.NewToken())); err != nil {
		fail("duplicate:", err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		fail("setrlimit:", err)
	}
	for start := time.Now(); ; {
		if _, err := s.Complete(background, large); err == nil {
			break
		} else if time.Since(start) > 20*time.Second {
			fail("no recovery:", err)
		}
	}
	if err := s.Close(); err != nil {
		fail("close:", err)
	}
	fmt.Println("recovered")
}
