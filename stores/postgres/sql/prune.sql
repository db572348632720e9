-- Deletes a batch of rows whose retention is over, unless another node is at it. The lock is held for this statement.
--
-- $1      number of the lock
-- Result  the number of rows deleted. The limit is no parameter: the plan hangs on it.
WITH mine AS MATERIALIZED (SELECT pg_try_advisory_xact_lock($1::bigint) AS locked),
old AS MATERIALIZED (
  SELECT event_id, provider, scope, environment FROM {table}
  WHERE (SELECT locked FROM mine) AND keep_until <= statement_timestamp()
  ORDER BY keep_until LIMIT {batch}
  FOR UPDATE SKIP LOCKED
)
DELETE FROM {table} AS present USING old
WHERE present.event_id = old.event_id AND present.provider = old.provider AND present.scope = old.scope
  AND present.environment = old.environment AND present.keep_until <= statement_timestamp()
