-- Counts the records.
--
-- Answer  provider, state, number, and when the longest-held claim was last granted or renewed (ms)
SELECT provider, state, count(*), floor(extract(epoch FROM min(updated_at)) * 1000)::bigint
FROM {table} WHERE keep_until > statement_timestamp()
GROUP BY provider, state
