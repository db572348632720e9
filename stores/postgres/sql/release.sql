-- Makes a key failed, so that the next claim is granted. Where no record is, a failed one is left that names the token: a
-- claim with it that arrives later is refused.
--
-- $1 to $5  event ID, provider, scope, environment; whole key where that is too long
-- $6        token
-- $7        keep, ms
-- $8        status or null
-- Answer    1 released, 2 already released by this token, 3 nothing was there and the token is void,
--           0 not the holder, -1 processed by this token
WITH {look},
decided AS MATERIALIZED (
  SELECT *, CASE
    WHEN state IS NULL THEN 3
    WHEN token <> $6::uuid THEN 0
    WHEN state = 'processed' THEN -1
    WHEN state = 'failed' THEN 2
    ELSE 1 END AS outcome
  FROM look
),
next AS MATERIALIZED (
  SELECT version, outcome,
    'failed' AS state,
    $6::uuid AS token,
    NULL::interval AS lease,
    NULL::timestamptz AS lease_until,
    moment + $7::bigint * interval '1 ms' AS keep_until,
    coalesce(first_seen, moment) AS first_seen,
    moment AS updated_at,
    coalesce(attempts, 0) AS attempts,
    coalesce(duplicates, 0) AS duplicates,
    event_type,
    $8::smallint AS status,
    payload_hash,
    original_id,
    $5::text AS long_key,
    response
  FROM decided WHERE outcome IN (1, 3)
),
{put}
SELECT outcome FROM decided WHERE outcome NOT IN (1, 3) OR EXISTS (TABLE put)
