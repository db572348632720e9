-- Reads a record together with what is left of its lease by the server's clock. Changes nothing.
--
-- $1 to $4  event ID, provider, scope, environment
-- Answer    the record, or no row
SELECT {record}
FROM {table} AS present, (SELECT clock_timestamp() AS moment OFFSET 0) AS clock
WHERE {present.key} AND keep_until > moment
