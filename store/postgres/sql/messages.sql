-- Inbox and outbox. In every statement $1 is the moment to go by, null for the server's own clock, and $2 the token of
-- the lease, null for somebody without one. Words for states that end and moves that are legal come from records.py.

-- name: accept
-- $3 batch (json), $4..$6 cursor, null without one, $7 how long keys are remembered.
-- Answers one row for each delivery, or none at all if a cursor came without the lease. If a tenant is not there its
-- name is the answer and nothing was written. Otherwise a row without id is one that somebody else is just adding:
-- asking again finds it.
WITH clock AS (SELECT coalesce($1::timestamptz, now()) AS at),
held AS MATERIALIZED (SELECT holds_lease('chat', $2::bigint, at) AS yes FROM clock),
batch AS MATERIALIZED (
    SELECT one.*
    FROM json_to_recordset($3::json) AS one (
        place integer, tenant_id text, session text, channel text, account text, external_id text,
        sender text, body text, is_group boolean, is_admin boolean, is_control boolean
    )
    WHERE $4::text IS NULL OR (SELECT yes FROM held)
),
stranger AS MATERIALIZED (
    SELECT tenant_id FROM batch
    WHERE NOT EXISTS (SELECT FROM tenants WHERE tenants.id = batch.tenant_id)
    ORDER BY place LIMIT 1
),
locked AS MATERIALIZED (
    SELECT count(pg_advisory_xact_lock(number)) AS sessions
    FROM (SELECT DISTINCT hashtextextended(session, 1) AS number FROM batch ORDER BY 1) AS numbers
),
moved AS (
    INSERT INTO cursors AS known (channel, account, position)
    SELECT $4, $5::text, $6::bigint FROM held WHERE yes AND $4 IS NOT NULL AND NOT EXISTS (SELECT FROM stranger)
    ON CONFLICT (channel, account) DO UPDATE SET position = greatest(known.position, excluded.position)
),
first AS (
    SELECT DISTINCT ON (tenant_id, channel, account, external_id) * FROM batch
    ORDER BY tenant_id, channel, account, external_id, place
),
fresh AS (
    INSERT INTO inbox AS known (
        tenant_id, session, channel, account, external_id, sender, body, is_group, is_admin, is_control, accepted_at
    )
    SELECT tenant_id, session, channel, account, external_id, sender, body, is_group, is_admin, is_control, clock.at
    FROM first, clock, locked
    WHERE locked.sessions >= 0 AND NOT EXISTS (SELECT FROM stranger)
    ORDER BY place
    ON CONFLICT ON CONSTRAINT inbox_delivered_once DO UPDATE SET
        id = excluded.id, session = excluded.session, sender = excluded.sender,
        body = excluded.body, is_group = excluded.is_group, is_admin = excluded.is_admin,
        is_control = excluded.is_control, accepted_at = excluded.accepted_at, state = 'accepted', attempts = 0,
        turn = '', ended_at = NULL
    WHERE known.ended_at <= excluded.accepted_at - $7::interval
    RETURNING *
),
told AS MATERIALIZED (
    SELECT pg_notify('goclaw', 'inbox') FROM held WHERE NOT yes AND EXISTS (SELECT FROM fresh)
),
found AS (
    SELECT fresh.*, true AS is_fresh FROM fresh
    UNION ALL
    SELECT inbox.*, false
    FROM first JOIN inbox USING (tenant_id, channel, account, external_id)
    WHERE NOT EXISTS (
        SELECT FROM fresh
        WHERE (fresh.tenant_id, fresh.channel, fresh.account, fresh.external_id)
            = (first.tenant_id, first.channel, first.account, first.external_id)
    )
)
SELECT
    found.id, found.session, found.channel, found.account, found.external_id, found.sender, found.body,
    found.is_group, found.is_admin, found.is_control, found.accepted_at, found.state, found.attempts, found.turn,
    found.ended_at, coalesce(found.is_fresh AND batch.place = first.place, false) AS is_fresh,
    sessions.mode, sessions.cap, sessions.drops, sessions.debounce_ms, sessions.max_concurrent, sessions.zone,
    sessions.context,
    (SELECT tenant_id FROM stranger) AS stranger, (SELECT count(*) FROM told) AS told
FROM batch
JOIN first USING (tenant_id, channel, account, external_id)
LEFT JOIN found USING (tenant_id, channel, account, external_id)
LEFT JOIN sessions ON sessions.tenant_id = batch.tenant_id AND sessions.session = batch.session
ORDER BY batch.place

-- name: move_cursor
-- $3..$5 cursor, of a batch with nothing in it.
WITH held AS MATERIALIZED (SELECT holds_lease('chat', $2::bigint, coalesce($1::timestamptz, now())) AS yes)
INSERT INTO cursors AS known (channel, account, position)
SELECT $3::text, $4::text, $5::bigint FROM held WHERE yes
ON CONFLICT (channel, account) DO UPDATE SET position = greatest(known.position, excluded.position)
RETURNING position

-- name: works
SELECT EXISTS (
    SELECT FROM leases WHERE name = 'chat' AND token = $2::bigint AND until > coalesce($1::timestamptz, now())
)

-- name: cursor
SELECT position
FROM cursors
WHERE channel = $3 AND account = $4 AND EXISTS (
    SELECT FROM leases WHERE name = 'chat' AND token = $2::bigint AND until > coalesce($1::timestamptz, now())
)

-- name: begin
-- $3 turn, $4 ids. What runs in this turn already is among the answers: the question may have been asked before.
WITH held AS MATERIALIZED (SELECT holds_lease('chat', $2::bigint, coalesce($1::timestamptz, now())) AS yes),
begun AS (
    UPDATE inbox SET state = 'running', turn = $3::text, attempts = attempts + 1
    WHERE id = ANY($4::bigint[]) AND ended_at IS NULL AND state = 'accepted' AND (SELECT yes FROM held)
    RETURNING *
)
SELECT * FROM begun
UNION ALL
SELECT * FROM inbox
WHERE id = ANY($4) AND ended_at IS NULL AND state = 'running' AND turn = $3 AND (SELECT yes FROM held)

-- name: settle
-- $3 turn, $4 ids, $5 state, $6 states from which it can be reached, $7 notes (json), $8 said (json), $9 context or
-- null. Nothing is written unless all of the turn's messages may make the move and every note's tenant is there; the
-- answer tells what stood in the way.
WITH clock AS (SELECT coalesce($1::timestamptz, now()) AS at),
held AS MATERIALIZED (SELECT holds_lease('chat', $2::bigint, at) AS yes FROM clock),
mine AS MATERIALIZED (
    SELECT id, tenant_id, session, state, array_position($4::bigint[], id) AS place
    FROM inbox
    WHERE id = ANY($4) AND ended_at IS NULL AND turn = $3::text AND (SELECT yes FROM held)
    ORDER BY id
    FOR UPDATE
),
notes AS MATERIALIZED (
    SELECT *
    FROM json_to_recordset($7::json) AS one (
        place integer, tenant_id text, session text, address text, body text, urgent boolean, run text
    )
),
said AS (
    SELECT * FROM json_to_recordset($8::json) AS one (place integer, role text, body text, data json)
),
illegal AS MATERIALIZED (SELECT id, state FROM mine WHERE state <> ALL($6::text[]) ORDER BY place LIMIT 1),
stranger AS MATERIALIZED (
    SELECT tenant_id FROM notes
    WHERE NOT EXISTS (SELECT FROM tenants WHERE tenants.id = notes.tenant_id)
    ORDER BY place LIMIT 1
),
good AS MATERIALIZED (
    SELECT tenant_id, session FROM mine
    WHERE NOT EXISTS (SELECT FROM illegal) AND NOT EXISTS (SELECT FROM stranger)
    ORDER BY place LIMIT 1
),
ended AS (
    UPDATE inbox SET state = $5::text, ended_at = clock.at, turn = '', session = '', sender = '', body = ''
    FROM mine, clock
    WHERE inbox.id = mine.id AND EXISTS (SELECT FROM good)
),
replies AS (
    INSERT INTO outbox (tenant_id, session, address, body, urgent, run, answers)
    SELECT tenant_id, session, address, body, urgent, run, (SELECT array_agg(id ORDER BY place) FROM mine)
    FROM notes
    WHERE EXISTS (SELECT FROM good)
    ORDER BY place
),
kept AS (
    INSERT INTO sessions AS known (tenant_id, session, context, lines, updated_at)
    SELECT tenant_id, session, coalesce($9::double precision, 0), (SELECT count(*) FROM said), clock.at
    FROM good, clock
    WHERE $9 IS NOT NULL OR EXISTS (SELECT FROM said)
    ON CONFLICT (tenant_id, session) DO UPDATE SET
        context = coalesce($9, known.context), lines = known.lines + excluded.lines, updated_at = excluded.updated_at
    RETURNING tenant_id, session, lines
),
written AS (
    INSERT INTO session_messages (tenant_id, session, number, said_at, role, body, data)
    SELECT kept.tenant_id, kept.session, kept.lines - (SELECT count(*) FROM said) + said.place, clock.at, said.role,
        said.body, said.data
    FROM kept, said, clock
)
SELECT
    EXISTS (SELECT FROM mine) AS open,
    (SELECT id FROM illegal) AS illegal_id,
    (SELECT state FROM illegal) AS illegal_state,
    (SELECT tenant_id FROM stranger) AS stranger

-- name: mine
-- $3 turn, $4 ids: what a settle of theirs would be about.
SELECT id, state FROM inbox
WHERE id = ANY($4::bigint[]) AND ended_at IS NULL AND turn = $3::text AND EXISTS (
    SELECT FROM leases WHERE name = 'chat' AND token = $2::bigint AND until > coalesce($1::timestamptz, now())
)
ORDER BY array_position($4, id)

-- name: stop
-- $3 tenant, $4 session, $5 up to which id, $6 sender or null, $7 only these ids or null. Answers with the rows as they
-- were before.
WITH clock AS (SELECT coalesce($1::timestamptz, now()) AS at),
held AS MATERIALIZED (SELECT holds_lease('chat', $2::bigint, at) AS yes FROM clock),
cut AS MATERIALIZED (
    SELECT * FROM inbox
    WHERE tenant_id = $3::text AND session = $4::text AND id <= $5::bigint AND ended_at IS NULL AND NOT is_control
        AND ($6::text IS NULL OR sender = $6) AND ($7::bigint[] IS NULL OR id = ANY($7)) AND (SELECT yes FROM held)
    ORDER BY id
    FOR UPDATE
),
ended AS (
    UPDATE inbox SET state = 'stopped', ended_at = clock.at, turn = '', session = '', sender = '', body = ''
    FROM cut, clock
    WHERE inbox.id = cut.id
)
SELECT * FROM cut ORDER BY id

-- name: put_back
-- $3 turn, $4 ids.
WITH held AS MATERIALIZED (SELECT holds_lease('chat', $2::bigint, coalesce($1::timestamptz, now())) AS yes)
UPDATE inbox SET state = 'accepted', turn = '', attempts = attempts - 1
WHERE id = ANY($4::bigint[]) AND ended_at IS NULL AND state = 'running' AND turn = $3::text AND (SELECT yes FROM held)

-- name: resume
WITH held AS MATERIALIZED (SELECT holds_lease('chat', $2::bigint, coalesce($1::timestamptz, now())) AS yes),
again AS (
    UPDATE inbox SET state = 'accepted', turn = ''
    WHERE ended_at IS NULL AND state = 'running' AND (SELECT yes FROM held)
    RETURNING *
),
open AS (
    SELECT * FROM again
    UNION ALL
    SELECT * FROM inbox WHERE ended_at IS NULL AND state = 'accepted' AND (SELECT yes FROM held)
)
SELECT * FROM open ORDER BY id

-- name: waiting
SELECT * FROM inbox
WHERE ended_at IS NULL AND state = 'accepted' AND EXISTS (
    SELECT FROM leases WHERE name = 'chat' AND token = $2::bigint AND until > coalesce($1::timestamptz, now())
)
ORDER BY id

-- name: standings
-- $1 sessions (json).
SELECT sessions.session, mode, cap, drops, debounce_ms, max_concurrent, zone, context
FROM json_to_recordset($1::json) AS asked (tenant_id text, session text)
JOIN sessions USING (tenant_id, session)

-- name: states
-- $1 moment, $2 tenants, $3 channels, $4 accounts and $5 names of deliveries, $6 how long keys are remembered.
SELECT asked.place, inbox.state
FROM unnest($2::text[], $3::text[], $4::text[], $5::text[]) WITH ORDINALITY
    AS asked (tenant_id, channel, account, external_id, place)
JOIN inbox USING (tenant_id, channel, account, external_id)
WHERE inbox.ended_at IS NULL OR inbox.ended_at > coalesce($1::timestamptz, now()) - $6::interval

-- name: outbox
-- $3 how many, $4 addresses to be left out.
SELECT id, session, body, urgent, run, answers, parts, live FROM outbox
WHERE address <> ALL($4::text[]) AND EXISTS (
    SELECT FROM leases WHERE name = 'chat' AND token = $2::bigint AND until > coalesce($1::timestamptz, now())
)
ORDER BY urgent DESC, id
LIMIT $3::bigint

-- name: progress
-- $3 reply, $4 parts, $5 live.
WITH held AS MATERIALIZED (SELECT holds_lease('chat', $2::bigint, coalesce($1::timestamptz, now())) AS yes)
UPDATE outbox SET parts = greatest(parts, $4::bigint), live = $5
WHERE id = $3::bigint AND (SELECT yes FROM held)
RETURNING id

-- name: sent
-- $3 reply, $4 why it could not be delivered, empty if it was. The cron run that said it is told.
WITH held AS MATERIALIZED (SELECT holds_lease('chat', $2::bigint, coalesce($1::timestamptz, now())) AS yes),
gone AS (
    DELETE FROM outbox WHERE id = $3::bigint AND (SELECT yes FROM held) RETURNING id, tenant_id, run
),
told AS (
    UPDATE cron_run_logs AS known
    SET delivery = CASE WHEN $4::text = '' THEN 'delivered' ELSE 'failed' END, delivery_error = $4
    FROM gone
    WHERE known.tenant_id = gone.tenant_id AND known.id = gone.run
)
SELECT id FROM gone
