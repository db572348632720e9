// Package chaos holds webhook_dedup to its two promises, nothing is lost and nothing is processed twice, against spawned
// Caddy processes, real stores and the faults of both. It knows the module by its outside only.
package chaos
