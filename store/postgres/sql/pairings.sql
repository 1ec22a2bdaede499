-- Who was let in. Whoever writes holds the lock, so that what is looked at first is still so: this happens rarely.

-- name: lock
SELECT pg_advisory_xact_lock(hashtextextended('pairings', 0))

-- name: moment
-- $1 moment.
SELECT coalesce($1::timestamptz, now()) AS at

-- name: allowed
-- $1 channel, $2 account, $3 sender.
SELECT tenants.id FROM pairings, tenants
WHERE (channel, account, sender) = ($1, $2, $3) AND tenants.id = tenant_id AND enabled

-- name: one
-- $1 channel, $2 account, $3 sender.
SELECT * FROM pairings WHERE (channel, account, sender) = ($1, $2, $3)

-- name: at_account
-- $1 channel, $2 account. Who knocks there, or did so.
SELECT * FROM pairings WHERE (channel, account) = ($1, $2) AND tenant_id IS NULL

-- name: with_code
-- $1 digest.
SELECT * FROM pairings WHERE digest = $1

-- name: knocks
SELECT *, coalesce($1::timestamptz, now()) AS now FROM pairings WHERE tenant_id IS NULL

-- name: of_tenant
-- $1 tenant.
SELECT * FROM pairings WHERE tenant_id = $1

-- name: keep_tenant
-- $1 tenant. It is there until the transaction ends.
SELECT id FROM tenants WHERE id = $1 FOR KEY SHARE

-- name: write
-- $1 channel, $2 account, $3 sender, $4 name, $5 digest, $6 state, $7 asked at, $8 tenant, $9 by, $10 decided at.
INSERT INTO pairings (channel, account, sender, name, digest, state, asked_at, tenant_id, decided_by, decided_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
ON CONFLICT (channel, account, sender) DO UPDATE SET
    name = excluded.name, digest = excluded.digest, state = excluded.state, asked_at = excluded.asked_at,
    tenant_id = excluded.tenant_id, decided_by = excluded.decided_by, decided_at = excluded.decided_at

-- name: remove
-- $1 channel, $2 account, $3 sender.
DELETE FROM pairings WHERE (channel, account, sender) = ($1, $2, $3)

-- name: tidy
-- $1 moment, $2 how long a code lives, $3 how long who was turned away is not heard, $4 how many may go.
WITH clock AS (SELECT coalesce($1::timestamptz, now()) AS at),
went AS (
    DELETE FROM pairings WHERE (channel, account, sender) IN (
        SELECT channel, account, sender FROM pairings
        WHERE tenant_id IS NULL
            AND coalesce(decided_at + $3::interval, asked_at + $2::interval) <= (SELECT at FROM clock)
        LIMIT $4::bigint
        FOR UPDATE SKIP LOCKED
    ) RETURNING sender
)
SELECT count(*) AS went FROM went
