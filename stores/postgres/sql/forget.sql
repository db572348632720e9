-- Removes a record whatever its state.
--
-- $1 to $4  event ID, provider, scope, environment
-- Answer    whether there was one whose retention was not over
WITH gone AS (DELETE FROM {table} AS present WHERE {present.key} RETURNING keep_until > clock_timestamp() AS live)
SELECT coalesce(bool_or(live), false) FROM gone
