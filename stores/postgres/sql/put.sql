-- The end of every step of the protocol: the row "next" takes the place of that which was looked at, if that is still in
-- the table as it was. If it is not, nothing is written and the statement answers with no row: it is then sent again.
inserted AS (
  INSERT INTO {table} (event_id, provider, scope, environment, {columns})
  SELECT $1, $2, $3, $4, {columns} FROM next WHERE version IS NULL
  ON CONFLICT DO NOTHING
  RETURNING 1
),
updated AS (
  UPDATE {table} AS present SET ({columns}) = ROW ({next.columns}) FROM next
  WHERE {present.key} AND present.xmin = next.version
  RETURNING 1
),
put AS (TABLE inserted UNION ALL TABLE updated)
