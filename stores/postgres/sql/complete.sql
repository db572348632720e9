-- Makes a key processed, also where no record is left.
--
-- $1 to $5   event ID, provider, scope, environment; whole key where that is too long
-- $6         token
-- $7         TTL, ms
-- $8, $9     status and response, each or null
-- $10 to $12 event type, digest, original ID, each or null
-- Answer     1 written, 2 already written by this token, 3 written where no record was,
--            0 lease lost, -1 lease lost and another token's completion stands
WITH {look},
decided AS MATERIALIZED (
  SELECT *, CASE
    WHEN state IS NULL THEN 3
    WHEN state = 'processed' THEN CASE WHEN token = $6::uuid THEN 2 ELSE -1 END
    WHEN state = 'processing' AND token = $6::uuid THEN 1
    ELSE 0 END AS outcome
  FROM look
),
next AS MATERIALIZED (
  SELECT version, outcome,
    'processed' AS state,
    $6::uuid AS token,
    NULL::interval AS lease,
    NULL::timestamptz AS lease_until,
    moment + $7::bigint * interval '1 ms' AS keep_until,
    coalesce(first_seen, moment) AS first_seen,
    moment AS updated_at,
    coalesce(attempts, 1) AS attempts,
    coalesce(duplicates, 0) AS duplicates,
    coalesce($10::text, event_type) AS event_type,
    $8::smallint AS status,
    coalesce(payload_hash, $11::bytea) AS payload_hash,
    coalesce(original_id, $12::text) AS original_id,
    $5::text AS long_key,
    $9::bytea AS response
  FROM decided WHERE outcome IN (1, 3)
),
{put}
SELECT outcome FROM decided WHERE outcome NOT IN (1, 3) OR EXISTS (TABLE put)
