package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/webhook-dedup/caddy-webhook-dedup/provider"
)

const page = "../../docs/providers.md"

func TestPageIsUpToDate(t *testing.T) {
	have, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	results, err := readConformance("../../conformance/matrix.json")
	if err != nil {
		t.Fatal(err)
	}
	if render(string(have), results) != string(have) {
		t.Error("docs/providers.md is out of date: run go generate in the directory provider")
	}
	for _, s := range provider.All() {
		if !strings.Contains(string(have), "](#"+anchor(s)+")") || !strings.Contains(string(have), "\n## "+s.Title+"\n") {
			t.Errorf("%s has no section", s.ID)
		}
	}
}

func TestMatrixIsKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "providers.md")
	if err := run([]string{file}); err != nil {
		t.Fatal(err)
	}
	fresh, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(fresh), matrixNone) {
		t.Fatal("no place for the matrix", err)
	}
	filled := strings.Replace(string(fresh), matrixNone, "| stripe | yes |", 1)
	if err := os.WriteFile(file, []byte(filled), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run([]string{file}); err != nil {
		t.Fatal(err)
	}
	if again, _ := os.ReadFile(file); string(again) != filled {
		t.Error("the matrix was not kept")
	}
	if run(nil) == nil || run([]string{t.TempDir()}) == nil || run([]string{file, file}) == nil || run([]string{file, t.TempDir()}) == nil {
		t.Error("no file, a directory, or a matrix that is none must be an error")
	}
}

func TestDurations(t *testing.T) {
	for d, want := range map[time.Duration]string{
		99305 * time.Second: "1 d 3 h 35 min 5 s", 72 * time.Hour: "3 d", 155 * time.Second: "2 min 35 s", time.Minute: "1 min",
	} {
		if got := duration(d); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if size(256<<10) != "256 KiB" || size(25<<20) != "25 MiB" {
		t.Error("size")
	}
}
