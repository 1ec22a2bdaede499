-- Everything from somewhere else, in one transaction. What is there already stays as it is.

-- name: before
-- $1 source. How far it was copied before; the row is locked, so that two who copy come one by one.
INSERT INTO imports AS known (source, id, change, upto) VALUES ($1, 0, 0, '-infinity')
ON CONFLICT (source) DO UPDATE SET id = known.id
RETURNING id, change, upto > '-infinity' AS copied, greatest(upto, '0001-01-01 00:00:00Z') AS upto

-- name: done
-- $1 source, $2 id, $3 change, $4 time.
UPDATE imports SET id = greatest(id, $2::bigint), change = greatest(change, $3::bigint), upto = greatest(upto, $4)
WHERE source = $1

-- name: tenants
INSERT INTO tenants (id, name, zone, enabled, created_at)
SELECT id, name, zone, enabled, created_at
FROM json_to_recordset($1::json) AS one (id text, name text, zone text, enabled boolean, created_at timestamptz)
ON CONFLICT DO NOTHING
RETURNING id

-- name: tokens
INSERT INTO api_tokens (tenant_id, id, name, digest, scopes, created_at, expires_at, last_used_at, revoked_at)
SELECT tenant_id, id, name, digest, scopes, created_at, expires_at, last_used_at, revoked_at
FROM json_to_recordset($1::json) AS one (
    tenant_id text, id text, name text, digest text, scopes json, created_at timestamptz, expires_at timestamptz,
    last_used_at timestamptz, revoked_at timestamptz
)
ON CONFLICT DO NOTHING
RETURNING id

-- name: disable
-- Who was switched off there is switched off here.
UPDATE tenants SET enabled = false
FROM json_to_recordset($1::json) AS one (id text, enabled boolean)
WHERE tenants.id = one.id AND tenants.enabled AND NOT one.enabled
RETURNING tenants.id

-- name: revoke
-- What was revoked there opens nothing here.
UPDATE api_tokens AS known SET revoked_at = one.revoked_at
FROM json_to_recordset($1::json) AS one (tenant_id text, id text, digest text, revoked_at timestamptz)
WHERE (known.tenant_id, known.id, known.digest) = (one.tenant_id, one.id, one.digest)
    AND known.revoked_at IS NULL AND one.revoked_at IS NOT NULL
RETURNING known.id

-- name: end
-- What was copied when it was open, has ended there since, and has not been touched here.
UPDATE inbox SET state = one.state, ended_at = one.ended_at, session = '', sender = '', body = ''
FROM json_to_recordset($1::json) AS one (
    tenant_id text, channel text, account text, external_id text, state text, ended_at timestamptz
)
WHERE (inbox.tenant_id, inbox.channel, inbox.account, inbox.external_id)
    = (one.tenant_id, one.channel, one.account, one.external_id)
    AND inbox.state = 'accepted' AND inbox.ended_at IS NULL
RETURNING inbox.id

-- name: messages
-- In the order of their old numbers; they get new ones.
INSERT INTO inbox (
    tenant_id, session, channel, account, external_id, sender, body, is_group, is_admin, is_control, accepted_at, state,
    attempts, ended_at
)
SELECT
    tenant_id, session, channel, account, external_id, sender, body, is_group, is_admin, is_control, accepted_at, state,
    attempts, ended_at
FROM json_to_recordset($1::json) AS one (
    old bigint, tenant_id text, session text, channel text, account text, external_id text, sender text, body text,
    is_group boolean, is_admin boolean, is_control boolean, accepted_at timestamptz, state text, attempts integer,
    ended_at timestamptz
)
ORDER BY old
ON CONFLICT DO NOTHING
RETURNING id, tenant_id, channel, account, external_id

-- name: replies
INSERT INTO outbox (tenant_id, session, address, body, urgent, run, answers, parts, live)
SELECT tenant_id, session, address, body, urgent, run, ARRAY(SELECT json_array_elements_text(answers)::bigint), parts, live
FROM json_to_recordset($1::json) AS one (
    old bigint, tenant_id text, session text, address text, body text, urgent boolean, run text, answers json,
    parts bigint, live text
)
ORDER BY old
RETURNING id

-- name: cursors
INSERT INTO cursors AS known (channel, account, position)
SELECT channel, account, position
FROM json_to_recordset($1::json) AS one (channel text, account text, position bigint)
ON CONFLICT (channel, account) DO UPDATE SET position = greatest(known.position, excluded.position)
RETURNING channel

-- name: newest_lines
-- $1 sessions (json). How far the transcripts are that are there, with their newest line.
SELECT known.tenant_id, known.session, known.lines, line.said_at, line.body
FROM json_to_recordset($1::json) AS asked (tenant_id text, session text)
JOIN sessions AS known USING (tenant_id, session)
LEFT JOIN session_messages AS line
    ON (line.tenant_id, line.session, line.number) = (known.tenant_id, known.session, known.lines)

-- name: sessions
-- A session that is there keeps its policy and its figure, and grows by the lines that follow.
INSERT INTO sessions AS known (
    tenant_id, session, mode, cap, drops, debounce_ms, max_concurrent, zone, context, lines, trimmed, updated_at
)
SELECT tenant_id, session, mode, cap, drops, debounce_ms, max_concurrent, zone, context, lines, trimmed, updated_at
FROM json_to_recordset($1::json) AS one (
    tenant_id text, session text, mode text, cap bigint, drops text, debounce_ms bigint, max_concurrent bigint, zone text,
    context double precision, lines bigint, trimmed bigint, updated_at timestamptz
)
ON CONFLICT (tenant_id, session) DO UPDATE SET lines = greatest(known.lines, excluded.lines)
RETURNING session

-- name: lines
INSERT INTO session_messages (tenant_id, session, number, said_at, role, body, data)
SELECT tenant_id, session, number, said_at, role, body, data
FROM json_to_recordset($1::json) AS one (
    tenant_id text, session text, number bigint, said_at timestamptz, role text, body text, data json
)
ON CONFLICT DO NOTHING
RETURNING number

-- name: workers
INSERT INTO workers (id, status, started_at, seen_at)
SELECT id, status, started_at, seen_at
FROM json_to_recordset($1::json) AS one (id text, status text, started_at timestamptz, seen_at timestamptz)
ON CONFLICT DO NOTHING
RETURNING id

-- name: beats
INSERT INTO heartbeats (worker, status, run, context, at)
SELECT worker, status, run, context, at
FROM json_to_recordset($1::json) AS one (
    old bigint, worker text, status text, run text, context json, at timestamptz
)
ORDER BY old
RETURNING id

-- name: readings
INSERT INTO machine_snapshots (worker, active_workers, active_runs, cpu_percent, memory_mb, context, at)
SELECT worker, active_workers, active_runs, cpu_percent, memory_mb, context, at
FROM json_to_recordset($1::json) AS one (
    old bigint, worker text, active_workers bigint, active_runs bigint, cpu_percent double precision,
    memory_mb double precision, context json, at timestamptz
)
ORDER BY old
RETURNING id

-- name: counters
-- $1 tenants. The highest numbers that jobs and notifications had here.
SELECT tenant_id, jobs, news FROM cron_counters WHERE tenant_id = ANY($1::text[])

-- name: known_jobs
-- $1 jobs (json): those that are here, and those whose number another one has.
SELECT asked.tenant_id, asked.id, same.id IS NOT NULL AS is_known, other.id IS NOT NULL AS is_taken
FROM json_to_recordset($1::json) AS asked (tenant_id text, id bigint, uid text)
LEFT JOIN cron_jobs AS same ON same.tenant_id = asked.tenant_id AND same.uid = asked.uid
LEFT JOIN cron_jobs AS other ON other.tenant_id = asked.tenant_id AND other.id = asked.id
WHERE same.id IS NOT NULL OR other.id IS NOT NULL

-- name: jobs
INSERT INTO cron_jobs SELECT * FROM json_populate_recordset(NULL::cron_jobs, $1::json)
RETURNING id

-- name: triggers
INSERT INTO cron_triggers (
    tenant_id, id, job, agent, kind, slot, due_at, created_at, state, reason, source, key, trace, attempt, token, owner,
    last, count, ended_at
)
SELECT tenant_id, id, job, agent, kind, slot, due_at, created_at, state, reason, source, key, trace, attempt, token,
    owner, last, count, ended_at
FROM json_populate_recordset(NULL::cron_triggers, $1::json)
ON CONFLICT DO NOTHING
RETURNING id

-- name: runs
INSERT INTO cron_run_logs SELECT * FROM json_populate_recordset(NULL::cron_run_logs, $1::json)
ON CONFLICT DO NOTHING
RETURNING tenant_id, id

-- name: outputs
INSERT INTO cron_outputs SELECT * FROM json_populate_recordset(NULL::cron_outputs, $1::json)
ON CONFLICT DO NOTHING
RETURNING run

-- name: news
INSERT INTO notifications SELECT * FROM json_populate_recordset(NULL::notifications, $1::json)
ON CONFLICT DO NOTHING
RETURNING seq

-- name: count_on
INSERT INTO cron_counters AS known (tenant_id, jobs, news)
SELECT tenant_id, jobs, news FROM json_to_recordset($1::json) AS one (tenant_id text, jobs bigint, news bigint)
ORDER BY tenant_id
ON CONFLICT (tenant_id) DO UPDATE SET
    jobs = greatest(known.jobs, excluded.jobs), news = greatest(known.news, excluded.news)
RETURNING tenant_id

-- name: tell_of_jobs
SELECT pg_notify('goclaw', 'due'), pg_notify('goclaw', 'cache:cron')

-- name: tell
SELECT pg_notify('goclaw', 'inbox')

-- name: pairings
-- Who is let in, turned away or knocks here stays so, but for what was decided there about the very same knock. A code
-- that somebody else has here is no code any more, and whoever had it knocks again.
INSERT INTO pairings AS known (
    tenant_id, channel, account, sender, name, digest, state, asked_at, decided_by, decided_at
)
SELECT tenant_id, channel, account, sender, name, digest, state, asked_at, decided_by, decided_at
FROM json_to_recordset($1::json) AS one (
    tenant_id text, channel text, account text, sender text, name text, digest text, state text, asked_at timestamptz,
    decided_by text, decided_at timestamptz
)
WHERE NOT EXISTS (
    SELECT FROM pairings AS other
    WHERE other.digest = one.digest
        AND (other.channel, other.account, other.sender) <> (one.channel, one.account, one.sender)
)
ON CONFLICT (channel, account, sender) DO UPDATE SET
    state = excluded.state, tenant_id = excluded.tenant_id, decided_by = excluded.decided_by,
    decided_at = excluded.decided_at
WHERE known.state = 'pending' AND excluded.state <> 'pending' AND known.digest = excluded.digest
RETURNING sender
