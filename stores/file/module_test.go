package file

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"go.uber.org/zap"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
)

func provision(path string) (*Store, error) {
	s := &Store{Path: path}
	return s, s.Provision(caddy.Context{})
}

func TestProvisionTouchesNothing(t *testing.T) {
	dir := t.TempDir()
	s, err := provision(filepath.Join(dir, "events.db"))
	if err != nil {
		t.Fatal(err)
	}
	if files, _ := os.ReadDir(dir); len(files) != 0 {
		t.Errorf("provisioning left %v", files)
	}
	open, err := s.OpenStore(zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	if _, err := provision(s.Path); err != nil { // beside the running one
		t.Error(err)
	}
}

func TestDefaultPathIsCreated(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	s, err := provision("")
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join("webhook_dedup", "events.db"); !strings.HasSuffix(s.path, want) {
		t.Errorf("the default is %q", s.path)
	}
	if _, err := os.Stat(filepath.Dir(s.path)); err == nil {
		t.Error("provisioning made the directory")
	}
	open, err := s.OpenStore(zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	mustClaim(t, open, "a", claim.NewToken(), claim.Granted)
	if err := open.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestBadPaths(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("something else"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		dir:                                     "is a directory, not a file",
		filepath.Join(dir, "none", "events.db"): "its directory does not exist",
		filepath.Join(file, "events.db"):        "not a directory",
		"{env.WEBHOOK_DEDUP_TEST_NOT_SET}":      "WEBHOOK_DEDUP_TEST_NOT_SET",
		"{http.request.uri}":                    "http.request.uri",
	} {
		if _, err := provision(path); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: %v, want %q", path, err, want)
		}
	}
	s, err := provision(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.OpenStore(zap.NewNop()); err == nil || !strings.Contains(err.Error(), s.path) {
		t.Errorf("a file of another kind: %v", err)
	}
}

func TestIdentityIsOfTheFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "real"), 0o700); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"link": "real", "events.link": filepath.Join("real", "events.db")} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("WEBHOOK_DEDUP_TEST_DIR", dir)
	var want string
	for _, exists := range []bool{false, true} {
		for _, path := range []string{
			filepath.Join(dir, "real", "events.db"),
			filepath.Join(dir, "link", "events.db"),
			filepath.Join(dir, "events.link"),
			dir + "/real/../real//events.db",
			"{env.WEBHOOK_DEDUP_TEST_DIR}/real/events.db",
		} {
			s, err := provision(path)
			if err != nil {
				t.Fatal(err)
			}
			if want == "" {
				want = s.Identity()
			}
			if got := s.Identity(); got != want || !strings.HasPrefix(got, "file:/") {
				t.Errorf("%q (exists: %t) is %q, want %q", path, exists, got, want)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, "real", "events.db"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCaddyfile(t *testing.T) {
	var s Store
	if err := s.UnmarshalCaddyfile(caddyfile.NewTestDispenser("file {\n\tpath /var/lib/e.db\n}")); err != nil || s.Path != "/var/lib/e.db" {
		t.Errorf("%+v, %v", s, err)
	}
	for text, want := range map[string]string{
		"file x":                        "wrong argument count",
		"file {\n\tpaht a\n}":           `unrecognized subdirective "paht"; allowed are path`,
		"file {\n\tpath\n}":             "wrong argument count",
		"file {\n\tpath a b\n}":         "wrong argument count",
		"file {\n\tpath \"\"\n}":        "empty",
		"file {\n\tpath a\n\tpath b\n}": "already set",
	} {
		if err := new(Store).UnmarshalCaddyfile(caddyfile.NewTestDispenser(text)); err == nil || !strings.Contains(strings.ToLower(err.Error()), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
