-- Asks for the right to process a key.
--
-- $1 to $5  event ID, provider, scope, environment; whole key where that is too long
-- $6        token
-- $7, $8    lease and keep, ms
-- $9 to $11 event type, digest, original ID, each or null
-- $12       whether to count a duplicate
-- Answer    outcome and the record as it is then. Outcome: 1 granted, 2 granted again, 3 in flight, 4 duplicate,
--           5 processed by this token, 6 refused
WITH {look},
decided AS MATERIALIZED (
  SELECT *, CASE
    WHEN state = 'processed' THEN CASE WHEN token = $6::uuid THEN 5 ELSE 4 END
    WHEN state = 'processing' AND token = $6::uuid THEN 2
    WHEN state = 'failed' AND token = $6::uuid THEN 6
    WHEN state = 'processing' AND lease_until > moment THEN 3
    ELSE 1 END AS outcome
  FROM look
),
next AS MATERIALIZED (
  SELECT version, moment, outcome,
    'processing' AS state,
    $6::uuid AS token,
    $7::bigint * interval '1 ms' AS lease,
    moment + $7::bigint * interval '1 ms' AS lease_until,
    moment + $8::bigint * interval '1 ms' AS keep_until,
    coalesce(first_seen, moment) AS first_seen,
    moment AS updated_at,
    CASE outcome WHEN 1 THEN coalesce(attempts, 0) + 1 ELSE attempts END AS attempts,
    coalesce(duplicates, 0) AS duplicates,
    coalesce($9::text, event_type) AS event_type,
    status,
    coalesce(payload_hash, $10::bytea) AS payload_hash,
    coalesce(original_id, $11::text) AS original_id,
    $5::text AS long_key,
    response
  FROM decided WHERE outcome IN (1, 2)
),
{put},
-- What an answer without a grant may leave behind: a duplicate counted, and a lease cut to its length after the clock was
-- set back. Whoever finds the row locked does without, and nobody waits for the disk.
touched AS (
  UPDATE {table} AS present SET
    duplicates = present.duplicates + (present.state = 'processed')::int,
    lease_until = least(present.lease_until, decided.moment + present.lease)
  FROM decided, (
    SELECT FROM {table} AS present
    WHERE {present.key} AND (SELECT outcome = 4 AND $12::bool OR outcome = 3 AND lease_until > moment + lease FROM decided)
    FOR UPDATE SKIP LOCKED
  ) AS free
  WHERE {present.key} AND present.state = decided.state AND present.token = decided.token
  RETURNING present.duplicates, set_config('synchronous_commit', 'off', true)
)
SELECT outcome, {record} FROM next WHERE EXISTS (TABLE put)
UNION ALL
SELECT outcome, {record} FROM (
  SELECT outcome, moment, state, token, lease, lease_until, first_seen, updated_at, attempts,
    coalesce((SELECT duplicates FROM touched), duplicates) AS duplicates,
    event_type, status, payload_hash, original_id, response
  FROM decided WHERE outcome > 2
) AS kept
