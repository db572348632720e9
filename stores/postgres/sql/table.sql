CREATE TABLE {table} (
  -- The parts of the key. A part that is too long for an index is cut and ends in its SHA-256.
  event_id     text COLLATE "C" NOT NULL,
  provider     text COLLATE "C" NOT NULL,
  scope        text COLLATE "C" NOT NULL,
  environment  text COLLATE "C" NOT NULL,
  state        text NOT NULL CHECK (state IN ('processing', 'processed', 'failed')),
  attempts     integer NOT NULL,
  duplicates   bigint NOT NULL,
  event_type   text,
  status       smallint,              -- the application's last HTTP status
  first_seen   timestamptz NOT NULL,
  updated_at   timestamptz NOT NULL,
  keep_until   timestamptz NOT NULL,  -- a row counts as absent from then on, and is deleted soon after
  token        uuid NOT NULL,         -- the delivery that holds, completed or released the event
  lease        interval,              -- length of the claim of a delivery being processed
  lease_until  timestamptz,
  payload_hash bytea,                 -- SHA-256 of the first delivery's body
  original_id  text,                  -- beginning of an event ID that was too long
  long_key     text,                  -- the whole key where a part of it is cut
  response     bytea,                 -- the stored answer, for "duplicate replay"
  PRIMARY KEY (event_id, provider, scope, environment)
) WITH (fillfactor = 90);
CREATE INDEX ON {table} (keep_until);
COMMENT ON TABLE {table} IS 'webhook_dedup 1';
