-- How far a database is, and bringing it further.

-- name: lock
-- One upgrade at a time; the lock goes with the transaction.
SELECT pg_advisory_xact_lock(hashtextextended('goclaw schema', 0))

-- name: known
SELECT to_regclass('schema_migrations') IS NOT NULL

-- name: make_list
CREATE TABLE IF NOT EXISTS schema_migrations (
    version    integer PRIMARY KEY,
    name       text NOT NULL,
    checksum   text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
)

-- name: applied
SELECT version, name, checksum FROM schema_migrations ORDER BY version

-- name: note
INSERT INTO schema_migrations (version, name, checksum) VALUES ($1, $2, $3)

-- name: server
SHOW server_version

-- name: encoding
SHOW server_encoding
