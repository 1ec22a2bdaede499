-- Tidying, a bounded piece at a time. Rows that somebody is at work on are left for the next round.

-- name: tidy
-- $1 moment, $2 for how long keys are remembered, $3 beats, $4 readings, $5 how many of each may go.
WITH clock AS (SELECT coalesce($1::timestamptz, now()) AS at),
keys AS (
    DELETE FROM inbox WHERE id = ANY (ARRAY(
        SELECT id FROM inbox
        WHERE ended_at IS NOT NULL AND ended_at <= (SELECT at FROM clock) - $2::interval
        ORDER BY ended_at LIMIT $5::bigint
        FOR UPDATE SKIP LOCKED
    )) RETURNING id
),
noted AS (
    DELETE FROM noted_keys WHERE (tenant_id, key) IN (
        SELECT tenant_id, key FROM noted_keys WHERE noted_at <= (SELECT at FROM clock) - $2::interval
        ORDER BY noted_at LIMIT $5
        FOR UPDATE SKIP LOCKED
    ) RETURNING key
),
beats AS (
    DELETE FROM heartbeats WHERE id = ANY (ARRAY(
        SELECT id FROM heartbeats WHERE at <= (SELECT at FROM clock) - $3::interval
        ORDER BY at LIMIT $5
        FOR UPDATE SKIP LOCKED
    )) RETURNING id
),
readings AS (
    DELETE FROM machine_snapshots WHERE id = ANY (ARRAY(
        SELECT id FROM machine_snapshots WHERE at <= (SELECT at FROM clock) - $4::interval
        ORDER BY at LIMIT $5
        FOR UPDATE SKIP LOCKED
    )) RETURNING id
)
SELECT
    (SELECT count(*) FROM keys) + (SELECT count(*) FROM noted) AS keys,
    (SELECT count(*) FROM beats) AS beats,
    (SELECT count(*) FROM readings) AS readings
