-- Who works here, how the machines are, and who may do what alone.

-- name: beat
-- $1 moment, $2 worker, $3 status, $4 run, $5 context (json).
WITH clock AS (SELECT coalesce($1::timestamptz, now()) AS at),
seen AS (
    INSERT INTO workers (id, status, started_at, seen_at)
    SELECT $2::text, $3::text, clock.at, clock.at FROM clock
    ON CONFLICT (id) DO UPDATE SET status = excluded.status, seen_at = excluded.seen_at
)
INSERT INTO heartbeats (worker, status, run, context, at)
SELECT $2, $3, $4::text, $5::json, clock.at FROM clock

-- name: leave
DELETE FROM workers WHERE id = $1 RETURNING id

-- name: workers
SELECT * FROM workers

-- name: beats
-- $1 worker, $2 how many.
SELECT * FROM heartbeats WHERE worker = $1 ORDER BY id DESC LIMIT $2::bigint

-- name: record
-- $1 moment, $2.. reading.
INSERT INTO machine_snapshots (worker, active_workers, active_runs, cpu_percent, memory_mb, context, at)
VALUES ($2, $3, $4, $5, $6, $7, coalesce($1::timestamptz, now()))

-- name: readings
SELECT * FROM machine_snapshots ORDER BY id DESC LIMIT $1::bigint

-- name: acquire
-- $1 moment, $2 name, $3 owner, $4 span.
SELECT * FROM grant_lease($2, $3, $4, coalesce($1::timestamptz, now()))

-- name: renew
-- $1 moment, $2 name, $3 token, $4 span.
UPDATE leases SET until = coalesce($1::timestamptz, now()) + $4::interval
WHERE name = $2 AND token = $3::bigint AND until > coalesce($1, now())
RETURNING *

-- name: release
-- $1 moment, $2 name, $3 token.
UPDATE leases SET until = coalesce($1::timestamptz, now())
WHERE name = $2 AND token = $3::bigint AND until > coalesce($1, now())
RETURNING name

-- name: lease
-- $1 moment, $2 name.
SELECT * FROM leases WHERE name = $2 AND until > coalesce($1::timestamptz, now())
