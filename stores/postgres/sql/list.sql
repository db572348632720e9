-- Reads a page in the order of the primary key: of a bounded number of rows behind the cursor, the ones that are asked for.
--
-- $1 to $4  event ID, provider, scope, environment behind which to begin
-- $5, $6    how many rows to look at, and to return
-- $7        event ID or null
-- $8 to $10 state, provider, and beginning of the whole key, each or null
-- Answer    number of rows looked at, primary key of the last of them, and a record with its primary key, or nulls where
--           none is asked for
WITH looked AS MATERIALIZED (
  SELECT * FROM {table}
  WHERE (event_id, provider, scope, environment) > ($1::text, $2::text, $3::text, $4::text)
    AND ($7::text IS NULL OR event_id = $7::text)
  ORDER BY event_id, provider, scope, environment LIMIT $5::bigint
),
last AS (SELECT * FROM looked ORDER BY event_id DESC, provider DESC, scope DESC, environment DESC LIMIT 1)
SELECT (SELECT count(*) FROM looked), last.event_id, last.provider, last.scope, last.environment, found.*
FROM last LEFT JOIN LATERAL (
  SELECT event_id, provider, scope, environment, long_key, {record}
  FROM looked, (SELECT clock_timestamp() AS moment OFFSET 0) AS clock
  WHERE keep_until > moment AND ($8::text IS NULL OR state = $8::text) AND ($9::text IS NULL OR provider = $9::text)
    AND ($10::text IS NULL OR starts_with(coalesce(long_key, concat_ws(':', environment, provider, scope, event_id)), $10::text))
  ORDER BY event_id, provider, scope, environment LIMIT $6::bigint
) AS found ON true
ORDER BY found.event_id, found.provider, found.scope, found.environment
