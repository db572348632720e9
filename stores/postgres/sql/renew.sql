-- Restarts the holder's lease, also one that has run out and was not taken over.
--
-- $1 to $5  event ID, provider, scope, environment; whole key where that is too long
-- $6        token
-- $7, $8    lease and keep, ms
-- Answer    1 renewed, 0 lease lost, -1 processed by this token
WITH {look},
decided AS MATERIALIZED (
  SELECT *, CASE
    WHEN state = 'processing' AND token = $6::uuid THEN 1
    WHEN state = 'processed' AND token = $6::uuid THEN -1
    ELSE 0 END AS outcome
  FROM look
),
next AS MATERIALIZED (
  SELECT version, outcome, state, token,
    $7::bigint * interval '1 ms' AS lease,
    moment + $7::bigint * interval '1 ms' AS lease_until,
    moment + $8::bigint * interval '1 ms' AS keep_until,
    first_seen,
    moment AS updated_at,
    attempts, duplicates, event_type, status, payload_hash, original_id,
    $5::text AS long_key,
    response
  FROM decided WHERE outcome = 1
),
{put}
SELECT outcome FROM decided WHERE outcome <> 1 OR EXISTS (TABLE put)
