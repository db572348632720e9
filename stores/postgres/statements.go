package postgres

import (
	"embed"
	"strconv"
	"strings"
)

//go:embed sql/*.sql
var sources embed.FS

// statements are the store's, for one table.
type statements struct {
	claim, renew, complete, release, get, forget, list, stats, prune string
	table                                                            string
}

// columns of a row beside its primary key.
var columns = []string{
	"state", "token", "lease", "lease_until", "keep_until", "first_seen", "updated_at", "attempts", "duplicates", "event_type",
	"status", "payload_hash", "original_id", "long_key", "response",
}

// recordColumns are a record as [scanner.targets] reads it, with times and durations in milliseconds.
const recordColumns = `state, token, (extract(epoch FROM lease) * 1000)::bigint,
  ceil(extract(epoch FROM least(lease_until - moment, lease)) * 1000)::bigint,
  floor(extract(epoch FROM first_seen) * 1000)::bigint, floor(extract(epoch FROM updated_at) * 1000)::bigint,
  attempts, duplicates, event_type, status, payload_hash, original_id, response`

// compile reads the statements for a table whose name is quoted.
func compile(table string) *statements {
	key := "present.event_id = $1::text AND present.provider = $2::text AND present.scope = $3::text AND present.environment = $4::text"
	fill := strings.NewReplacer(
		"{look}", code("look"),
		"{put}", code("put"),
		"{record}", recordColumns,
	)
	name := strings.NewReplacer(
		"{table}", table,
		"{present.key}", key,
		"{batch}", strconv.Itoa(pruneBatch),
		"{columns}", strings.Join(columns, ", "),
		"{next.columns}", "next."+strings.Join(columns, ", next."),
	)
	read := func(file string) string { return name.Replace(fill.Replace(code(file))) }
	return &statements{
		claim: read("claim"), renew: read("renew"), complete: read("complete"), release: read("release"), get: read("get"),
		forget: read("forget"), list: read("list"), stats: read("stats"), prune: read("prune"),
		table: name.Replace(source("table")),
	}
}

func source(name string) string {
	text, err := sources.ReadFile("sql/" + name + ".sql")
	if err != nil {
		panic(err) // it is built in
	}
	return string(text)
}

// code is a statement without its comments, which would travel with every call.
func code(name string) string {
	var b strings.Builder
	for line := range strings.Lines(source(name)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "--") {
			b.WriteString(line)
			b.WriteByte('\n')
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}
