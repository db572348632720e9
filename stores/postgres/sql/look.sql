-- The beginning of every step of the protocol: one look at the row, which decides, and the clock.
--
-- $1 to $4  event ID, provider, scope, environment: the primary key
-- look      always one row: version is that of the row in the table, or null; the record's columns are null where there
--           is no record or its retention is over; moment is the time
look AS MATERIALIZED (
  SELECT present.xmin AS version, clock.moment, record.*
  FROM (SELECT clock_timestamp() AS moment OFFSET 0) AS clock
  LEFT JOIN {table} AS present ON {present.key}
  LEFT JOIN LATERAL (SELECT present.* WHERE present.keep_until > clock.moment) AS record ON true
)
