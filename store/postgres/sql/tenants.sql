-- Tenants and their API tokens.

-- name: create_tenant
-- $1 moment, $2 id, $3 name, $4 zone.
INSERT INTO tenants (id, name, zone, enabled, created_at)
VALUES ($2, $3, $4, true, coalesce($1::timestamptz, now()))
ON CONFLICT DO NOTHING
RETURNING id

-- name: tenant
SELECT * FROM tenants WHERE id = $1

-- name: tenants
SELECT * FROM tenants

-- name: enable_tenant
-- $1 id, $2 enabled.
UPDATE tenants SET enabled = $2 WHERE id = $1 RETURNING id

-- name: edit_tenant
-- $1 id, $2 name, $3 zone; null for what stays.
UPDATE tenants SET name = coalesce($2, name), zone = coalesce($3, zone) WHERE id = $1 RETURNING id

-- name: delete_tenant
DELETE FROM tenants WHERE id = $1 RETURNING id

-- name: add_token
-- $1 moment, $2 tenant, $3 id, $4 name, $5 digest, $6 scopes (json), $7 expires at.
WITH owner AS MATERIALIZED (SELECT id FROM tenants WHERE id = $2),
added AS (
    INSERT INTO api_tokens (tenant_id, id, name, digest, scopes, expires_at, created_at)
    SELECT id, $3::text, $4::text, $5::text, $6::json, $7::timestamptz, coalesce($1::timestamptz, now()) FROM owner
    ON CONFLICT DO NOTHING
    RETURNING id
)
SELECT EXISTS (SELECT FROM owner) AS known, EXISTS (SELECT FROM added) AS added

-- name: token_for
-- $1 moment, $2 digest, $3 how exactly its last use is noted.
WITH clock AS (SELECT coalesce($1::timestamptz, now()) AS at),
good AS MATERIALIZED (
    SELECT api_tokens.* FROM api_tokens, tenants, clock
    WHERE digest = $2 AND tenants.id = tenant_id AND enabled AND revoked_at IS NULL
        AND (expires_at IS NULL OR clock.at < expires_at)
),
used AS (
    UPDATE api_tokens SET last_used_at = clock.at
    FROM good, clock
    WHERE api_tokens.digest = good.digest
        AND (good.last_used_at IS NULL OR good.last_used_at <= clock.at - $3::interval)
    RETURNING api_tokens.last_used_at
)
SELECT tenant_id, id, name, digest, scopes, created_at, expires_at, revoked_at,
    coalesce((SELECT used.last_used_at FROM used), good.last_used_at) AS last_used_at
FROM good

-- name: tokens
SELECT * FROM api_tokens WHERE tenant_id = $1

-- name: revoke_token
-- $1 moment, $2 tenant, $3 id.
UPDATE api_tokens SET revoked_at = coalesce($1::timestamptz, now())
WHERE tenant_id = $2 AND id = $3 AND revoked_at IS NULL
RETURNING id

-- name: note_key
-- $1 moment, $2 tenant, $3 key, $4 meaning. What was noted first is written once more, so that it can be told.
INSERT INTO noted_keys (tenant_id, key, meaning, noted_at)
SELECT id, $3::text, $4::text, coalesce($1::timestamptz, now()) FROM tenants WHERE id = $2
ON CONFLICT (tenant_id, key) DO UPDATE SET meaning = noted_keys.meaning
RETURNING meaning
