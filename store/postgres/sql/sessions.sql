-- Transcripts and the policies of single conversations. A session is named by its tenant and its text form.

-- name: session
-- $1 tenant, $2 session.
SELECT * FROM sessions WHERE tenant_id = $1 AND session = $2

-- name: sessions
-- $1 tenant, $2 after, $3 how many.
SELECT * FROM sessions WHERE tenant_id = $1 AND session > $2 ORDER BY session LIMIT $3::bigint

-- name: set_policy
-- $1 moment, $2 tenant, $3 session, $4.. policy, $10 which of its fields (null: all). No answer if there is no such
-- tenant.
INSERT INTO sessions AS known (
    tenant_id, session, mode, cap, drops, debounce_ms, max_concurrent, zone, updated_at
)
SELECT id, $3::text, $4::text, $5::bigint, $6::text, $7::bigint, $8::bigint, $9::text,
    coalesce($1::timestamptz, now())
FROM tenants WHERE id = $2
ON CONFLICT (tenant_id, session) DO UPDATE SET
    mode = CASE WHEN coalesce('mode' = ANY ($10::text[]), true) THEN excluded.mode ELSE known.mode END,
    cap = CASE WHEN coalesce('cap' = ANY ($10), true) THEN excluded.cap ELSE known.cap END,
    drops = CASE WHEN coalesce('drop' = ANY ($10), true) THEN excluded.drops ELSE known.drops END,
    debounce_ms = CASE
        WHEN coalesce('debounce_ms' = ANY ($10), true) THEN excluded.debounce_ms ELSE known.debounce_ms END,
    max_concurrent = CASE
        WHEN coalesce('max_concurrent' = ANY ($10), true) THEN excluded.max_concurrent ELSE known.max_concurrent END,
    zone = CASE WHEN coalesce('zone' = ANY ($10), true) THEN excluded.zone ELSE known.zone END,
    updated_at = excluded.updated_at
RETURNING *

-- name: remember
-- $1 moment, $2 tenant, $3 session, $4 said (json). No answer if there is no such tenant.
WITH clock AS (SELECT coalesce($1::timestamptz, now()) AS at),
said AS (
    SELECT * FROM json_to_recordset($4::json) AS one (place integer, role text, body text, data json)
),
kept AS (
    INSERT INTO sessions AS known (tenant_id, session, lines, updated_at)
    SELECT id, $3::text, (SELECT count(*) FROM said), clock.at FROM tenants, clock WHERE id = $2
    ON CONFLICT (tenant_id, session) DO UPDATE SET
        lines = known.lines + excluded.lines, updated_at = excluded.updated_at
    RETURNING tenant_id, session, lines
),
written AS (
    INSERT INTO session_messages (tenant_id, session, number, said_at, role, body, data)
    SELECT kept.tenant_id, kept.session, kept.lines - (SELECT count(*) FROM said) + said.place, clock.at, said.role,
        said.body, said.data
    FROM kept, said, clock
)
SELECT lines FROM kept

-- name: transcript
-- $1 tenant, $2 session, $3 after, $4 how many.
SELECT number, said_at, role, body, data FROM session_messages
WHERE tenant_id = $1 AND session = $2 AND number > $3::bigint
ORDER BY number
LIMIT $4::bigint

-- name: newest
-- $1 tenant, $2 session, $3 how many; newest first.
SELECT number, said_at, role, body, data FROM session_messages
WHERE tenant_id = $1 AND session = $2
ORDER BY number DESC
LIMIT $3::bigint

-- name: trim
-- $1 moment, $2 tenant, $3 session, $4 up to which number. Answers with how many went, or not at all.
WITH before AS MATERIALIZED (
    SELECT tenant_id, session, trimmed, least($4::bigint, lines) AS upto FROM sessions
    WHERE tenant_id = $2 AND session = $3
    FOR UPDATE
),
trimmed AS (
    UPDATE sessions SET trimmed = before.upto, updated_at = coalesce($1::timestamptz, now())
    FROM before
    WHERE sessions.tenant_id = before.tenant_id AND sessions.session = before.session AND before.upto > before.trimmed
    RETURNING before.upto - before.trimmed AS went
),
gone AS (
    DELETE FROM session_messages USING before
    WHERE session_messages.tenant_id = before.tenant_id AND session_messages.session = before.session
        AND number <= before.upto
)
SELECT went FROM trimmed

-- name: forget
-- $1 tenant, $2 session.
DELETE FROM sessions WHERE tenant_id = $1 AND session = $2 RETURNING session
