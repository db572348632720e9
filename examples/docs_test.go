//go:build unix

package examples_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	webhookdedup "github.com/webhook-dedup/caddy-webhook-dedup"
	"github.com/webhook-dedup/caddy-webhook-dedup/provider"
)

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// blocks returns the fenced code blocks of one language, without the indentation of their list item.
func blocks(t *testing.T, text, language string) []string {
	t.Helper()
	var found []string
	for _, match := range regexp.MustCompile("(?ms)^( *)```"+language+"\n(.*?)^ *```$").FindAllStringSubmatch(text, -1) {
		found = append(found, strings.ReplaceAll("\n"+match[2], "\n"+match[1], "\n")[1:])
	}
	if len(found) == 0 {
		t.Fatalf("no %s blocks", language)
	}
	return found
}

// TestReadmeConfigurations validates every Caddyfile of the README, and finds each piece of its JSON in one of them.
func TestReadmeConfigurations(t *testing.T) {
	readme := read(t, "../README.md")
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	var handlers, apps []any
	for _, text := range blocks(t, readme, "caddyfile") {
		for _, name := range regexp.MustCompile(`\{env\.(\w+)\}`).FindAllStringSubmatch(text, -1) {
			t.Setenv(name[1], "whsec_readme")
		}
		t.Setenv("REDIS_URL", "redis://localhost:6379")
		config := adapt(t, []byte(text), "")
		validate(t, config)
		var parsed any
		if err := json.Unmarshal(config, &parsed); err != nil {
			t.Fatal(err)
		}
		if app := parsed.(map[string]any)["apps"].(map[string]any)["webhook_dedup"]; app != nil {
			apps = append(apps, meaning(t, app, new(webhookdedup.App)))
		}
		walk(parsed, func(object map[string]any) {
			if object["handler"] == "webhook_dedup" {
				handlers = append(handlers, meaning(t, object, new(webhookdedup.Handler)))
			}
		})
	}
	for _, text := range blocks(t, readme, "json") {
		var parsed map[string]any
		if err := json.Unmarshal([]byte(text), &parsed); err != nil {
			t.Fatal(err)
		}
		among, target := apps, any(new(webhookdedup.App))
		if parsed["handler"] != nil {
			among, target = handlers, new(webhookdedup.Handler)
		}
		want := meaning(t, parsed, target)
		if !slices.ContainsFunc(among, func(have any) bool { return reflect.DeepEqual(have, want) }) {
			t.Errorf("no Caddyfile of the README adapts to this JSON:\n%s", text)
		}
	}
}

// meaning is what a piece of JSON means to the module, where it was written down aside.
func meaning(t *testing.T, value any, target any) any {
	t.Helper()
	object := value.(map[string]any)
	delete(object, "handler")
	delete(object, "defined_at")
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, target); err != nil {
		t.Fatal(err)
	}
	if text, err = json.Marshal(target); err != nil {
		t.Fatal(err)
	}
	var same any
	if err := json.Unmarshal(text, &same); err != nil {
		t.Fatal(err)
	}
	return same
}

func walk(value any, visit func(map[string]any)) {
	switch v := value.(type) {
	case map[string]any:
		visit(v)
		for _, member := range v {
			walk(member, visit)
		}
	case []any:
		for _, element := range v {
			walk(element, visit)
		}
	}
}

// TestReadmeFields finds every field of the configuration, in JSON and in the Caddyfile, in the README.
func TestReadmeFields(t *testing.T) {
	readme := read(t, "../README.md")
	for _, value := range []any{
		webhookdedup.Handler{}, webhookdedup.App{}, webhookdedup.OwnProvider{}, webhookdedup.InFlight{}, webhookdedup.Duplicate{},
		provider.Scheme{}, provider.Timestamp{}, provider.Source{},
	} {
		of := reflect.TypeOf(value)
		for i := range of.NumField() {
			name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
			if name != "" && name != "-" && !strings.Contains(readme, `"`+name+`"`) && !strings.Contains(readme, "`"+name+"`") {
				t.Errorf("the README lacks the field %q of %s", name, of)
			}
		}
	}
	source := read(t, "../caddyfile.go") + read(t, "../caddyfile_app.go")
	lines := regexp.MustCompile(`(?m)^//\t+(\w+) `).FindAllStringSubmatch(source, -1)
	if len(lines) < 30 {
		t.Fatalf("the Caddyfile syntax has %d lines", len(lines))
	}
	for _, line := range lines {
		if !regexp.MustCompile("`" + line[1] + "[ `]").MatchString(readme) {
			t.Errorf("the README lacks the line %q of the Caddyfile", line[1])
		}
	}
}

// TestReadmeProviders compares the README's list with the catalogue.
func TestReadmeProviders(t *testing.T) {
	_, section, _ := strings.Cut(read(t, "../README.md"), "\n### Providers\n")
	section, _, _ = strings.Cut(section, "\n\n`caddy webhook-dedup")
	var names []string
	for _, spec := range provider.All() {
		names = append(names, "`"+spec.ID+"`")
	}
	want := fmt.Sprintf("The catalogue has %d: %s.", len(names), strings.Join(names, ", "))
	if strings.TrimSpace(section) != want {
		t.Errorf("the README's list of providers should be:\n%s", want)
	}
}

// TestGuaranteesMessages finds every log message that docs/guarantees.md quotes in the source.
func TestGuaranteesMessages(t *testing.T) {
	files, err := filepath.Glob("../*.go")
	if err != nil {
		t.Fatal(err)
	}
	var source strings.Builder
	files = append(files, "../provider/errors.go")
	for _, file := range files {
		if !strings.HasSuffix(file, "_test.go") {
			source.WriteString(read(t, file))
		}
	}
	text := regexp.MustCompile("`[^`]*`").ReplaceAllString(read(t, "../docs/guarantees.md"), "")
	text = regexp.MustCompile(`\s+`).ReplaceAllString(text, " ")
	n := 0
	for _, quoted := range regexp.MustCompile(`"([^"]*)"`).FindAllStringSubmatch(text, -1) {
		message := strings.Trim(quoted[1], "…")
		if len(message) < 16 {
			continue // a word
		}
		if n++; !strings.Contains(source.String(), message) {
			t.Errorf("nothing logs %q", message)
		}
	}
	if n < 15 {
		t.Errorf("%d messages are quoted", n)
	}
}

// TestLinks finds the files that the documents link to.
func TestLinks(t *testing.T) {
	documents, err := filepath.Glob("../*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"../docs/*.md", "*.md", "*/README.md"} {
		more, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, more...)
	}
	for _, document := range documents {
		for _, link := range regexp.MustCompile(`\]\(([^)#]+)[^)]*\)`).FindAllStringSubmatch(read(t, document), -1) {
			if strings.Contains(link[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(document), link[1])); err != nil {
				t.Errorf("%s: %v", document, err)
			}
		}
	}
}
