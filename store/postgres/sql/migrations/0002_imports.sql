-- What was copied from elsewhere, so that copying again brings only what is new there.

CREATE TABLE imports (
    source text PRIMARY KEY,
    id     bigint NOT NULL,
    change bigint NOT NULL,
    upto   timestamptz NOT NULL
);
COMMENT ON TABLE imports IS 'By the identity of a data directory: its highest id, change and time when it was copied.';
