-- Jobs, triggers, runs, notifications. In every statement that goes by the time, $1 is the moment, null for the server's
-- own clock. Whoever waits for several rows waits for them in this order, so that nobody waits in a circle:
--     jobs by tenant and number ──▶ triggers by tenant, job and id ──▶ sessions ──▶ counters by tenant
-- A job is locked FOR NO KEY UPDATE: a run that is being added refers to it, and need not wait.

-- ── jobs ────────────────────────────────────────────────────────────────────────────────────────────────────────────

-- name: adding
-- $1 tenant. Jobs of a tenant are added one by one: they are numbered, and counted against bounds.
SELECT pg_advisory_xact_lock(hashtextextended('cron ' || $1::text, 0))

-- name: before_adding
-- $1 moment, $2 tenant, $3 uid, $4 agent, $5 bound of the tenant, $6 of the agent, null for none. No answer without the
-- tenant. No more is counted than the bounds allow, however many there are.
SELECT
    coalesce($1::timestamptz, now()) AS at,
    coalesce((SELECT jobs FROM cron_counters WHERE tenant_id = $2), 0) + 1 AS number,
    (SELECT id FROM cron_jobs WHERE tenant_id = $2 AND uid = $3) AS known,
    coalesce((
        SELECT count(*) FROM (
            SELECT FROM cron_jobs WHERE tenant_id = $2 AND status IN ('active', 'paused')
            ORDER BY agent, id LIMIT $5::bigint
        ) AS living
    ) >= $5, false) OR coalesce((
        SELECT count(*) FROM (
            SELECT FROM cron_jobs WHERE tenant_id = $2 AND agent = $4 AND status IN ('active', 'paused')
            ORDER BY id LIMIT $6::bigint
        ) AS living
    ) >= $6, false) AS full
FROM tenants WHERE id = $2

-- name: added
-- $1 tenant, $2 number.
INSERT INTO cron_counters AS known (tenant_id, jobs) VALUES ($1, $2)
ON CONFLICT (tenant_id) DO UPDATE SET jobs = greatest(known.jobs, excluded.jobs)

-- name: job
-- $1 tenant, $2 number.
SELECT * FROM cron_jobs WHERE tenant_id = $1 AND id = $2

-- name: job_with
-- $1 tenant, $2 uid.
SELECT * FROM cron_jobs WHERE tenant_id = $1 AND uid = $2

-- name: jobs
-- $1 tenant, $2 after, $3 how many, $4 statuses or null.
SELECT * FROM cron_jobs
WHERE tenant_id = $1 AND id > $2::bigint AND ($4::text[] IS NULL OR status = ANY($4))
ORDER BY id
LIMIT $3::bigint

-- name: unplanned
-- $1 moment, $2 how many, $3 how many are looked at. `next_at` is that of the open planned trigger. So a job without one
-- either says so, or its trigger was taken away behind our back, and that is seen when its time has come: nothing was
-- missed before. It does not move on, so it is soon among the oldest.
WITH suspect AS MATERIALIZED (
    (SELECT * FROM cron_jobs WHERE status = 'active' AND kind <> 'webhook' AND next_at IS NULL LIMIT $3::bigint)
    UNION ALL
    (
        SELECT * FROM cron_jobs
        WHERE status = 'active' AND kind <> 'webhook' AND next_at <= coalesce($1::timestamptz, now())
        ORDER BY next_at LIMIT $3
    )
)
SELECT job.* FROM suspect AS job
WHERE (
    SELECT planned.id FROM cron_triggers AS planned
    WHERE planned.tenant_id = job.tenant_id AND planned.job = job.id
        AND planned.kind IN ('schedule', 'catch-up') AND planned.state IN ('pending', 'executing')
    LIMIT 1
) IS NULL
ORDER BY job.tenant_id COLLATE "C", job.id
LIMIT $2::bigint

-- ── triggers ────────────────────────────────────────────────────────────────────────────────────────────────────────

-- name: fire
-- $1 moment, $2 tenant, $3 id, $4 key or null, $5 job, $6 kind, $7 trace. Answers the trigger that was there or that is
-- new. No trigger, but a job, means that somebody else is just adding it: asking again finds it.
WITH clock AS (SELECT coalesce($1::timestamptz, now()) AS at),
known AS MATERIALIZED (
    SELECT * FROM cron_triggers WHERE tenant_id = $2 AND id = $3
    UNION ALL
    SELECT * FROM cron_triggers WHERE tenant_id = $2 AND key = $4::text
    LIMIT 1
),
fired AS MATERIALIZED (
    SELECT tenant_id, id, agent FROM cron_jobs
    WHERE tenant_id = $2 AND id = $5::bigint AND status IN ('active', 'paused') AND NOT EXISTS (SELECT FROM known)
    FOR NO KEY UPDATE
),
fresh AS (
    INSERT INTO cron_triggers (
        tenant_id, id, job, agent, kind, slot, due_at, created_at, state, reason, key, trace, attempt, token, owner, count
    )
    SELECT tenant_id, $3, id, agent, $6::text, at, at, at, 'pending', '', $4, $7::text, 0, 0, '', 1
    FROM fired, clock
    ON CONFLICT DO NOTHING
    RETURNING *
),
told AS MATERIALIZED (SELECT pg_notify('goclaw', 'due') FROM fresh),
found AS (SELECT * FROM known UNION ALL SELECT * FROM fresh)
SELECT found.*, (SELECT count(*) FROM told) AS told
FROM (SELECT) AS one LEFT JOIN found ON true
WHERE found.id IS NOT NULL OR EXISTS (SELECT FROM fired)

-- name: trigger
-- $1 tenant, $2 id.
SELECT * FROM cron_triggers WHERE tenant_id = $1 AND id = $2

-- name: triggers
-- $1 tenant, $2 job, $3 how many.
SELECT * FROM cron_triggers WHERE tenant_id = $1 AND job = $2 ORDER BY slot DESC, id DESC LIMIT $3::bigint

-- name: next_due
-- $1 moment. What waits behind another one of its job is not waited for: the end of that one tells.
SELECT it.claim_at - coalesce($1::timestamptz, now()) AS wait FROM cron_triggers AS it
WHERE it.claim_at IS NOT NULL AND (it.state = 'executing' OR NOT EXISTS (
    SELECT FROM cron_triggers AS other
    WHERE other.tenant_id = it.tenant_id AND other.job = it.job AND other.state = 'executing'
))
ORDER BY it.claim_at
LIMIT 1

-- name: claim
-- $1 moment, $2 worker, $3 how many, $4 span, $5 after which tenant, $6 agents and $7 the room that each has.
-- Every tenant brings its first ones, those of agents with little room apart so that these stand in nobody's way; then
-- tenants take turns. What another claim or a settle has its hands on is passed by. Of a job's triggers only the one
-- that executes or else the first one can be claimed.
WITH clock AS MATERIALIZED (SELECT coalesce($1::timestamptz, now()) AS at),
shares AS MATERIALIZED (
    SELECT NULL AS agent, $3::bigint AS places
    UNION ALL
    SELECT agent, least(places, $3) FROM unnest($6::text[], $7::bigint[]) AS room (agent, places) WHERE places > 0
),
due AS MATERIALIZED (
    SELECT one.*, tenants.enabled, shares.agent IS NOT NULL AS is_limited, shares.places
    FROM tenants CROSS JOIN shares CROSS JOIN LATERAL (
        SELECT tenant_id, id, agent, claim_at FROM cron_triggers AS it
        WHERE it.tenant_id = tenants.id AND it.claim_at <= (SELECT at FROM clock)
            AND CASE WHEN shares.agent IS NULL THEN it.agent <> ALL($6) ELSE it.agent = shares.agent END
            AND (it.state = 'executing' OR NOT EXISTS (
                SELECT FROM cron_triggers AS other
                WHERE other.tenant_id = it.tenant_id AND other.job = it.job AND other.claim_at IS NOT NULL
                    AND (other.state = 'executing' OR (other.claim_at, other.id) < (it.claim_at, it.id))
            ))
        ORDER BY claim_at, id
        LIMIT shares.places
        FOR UPDATE SKIP LOCKED
    ) AS one
),
turns AS (
    SELECT *, row_number() OVER (PARTITION BY tenant_id ORDER BY claim_at, id) AS turn,
        tenant_id COLLATE "C" <= $5::text COLLATE "C" AS is_after
    FROM due
),
placed AS (
    SELECT *, row_number() OVER (PARTITION BY agent ORDER BY turn, is_after, tenant_id COLLATE "C") AS place FROM turns
),
taken AS MATERIALIZED (
    SELECT *, row_number() OVER (ORDER BY turn, is_after, tenant_id COLLATE "C") AS number
    FROM placed
    WHERE NOT is_limited OR place <= places
    ORDER BY turn, is_after, tenant_id COLLATE "C"
    LIMIT $3
),
leased AS (
    UPDATE cron_triggers AS it
    SET state = 'executing', owner = $2::text, token = it.token + 1, leased_until = clock.at + $4::interval, reason = ''
    FROM taken, clock
    WHERE it.tenant_id = taken.tenant_id AND it.id = taken.id
    RETURNING it.*, taken.enabled, taken.number
)
SELECT leased.*, clock.at AS claimed_at, job.*, lost.*
FROM leased CROSS JOIN clock
JOIN cron_jobs AS job ON job.tenant_id = leased.tenant_id AND job.id = leased.job
LEFT JOIN LATERAL (
    SELECT * FROM cron_run_logs AS run
    WHERE run.tenant_id = leased.tenant_id AND run.trigger = leased.id AND run.state = 'running'
    ORDER BY started_at, attempt, id LIMIT 1
) AS lost ON true
ORDER BY leased.number

-- name: claim_orphans
-- $1 moment, $2 worker, $3 how many, $4 span, $5 for how long their owners were not heard of.
WITH clock AS MATERIALIZED (SELECT coalesce($1::timestamptz, now()) AS at),
found AS MATERIALIZED (
    SELECT it.tenant_id, it.id, it.claim_at, tenants.enabled
    FROM cron_triggers AS it JOIN tenants ON tenants.id = it.tenant_id
    WHERE it.state = 'executing' AND it.claim_at <= (SELECT at FROM clock) AND NOT EXISTS (
        SELECT FROM workers WHERE workers.id = it.owner AND workers.seen_at > (SELECT at FROM clock) - $5::interval
    )
    ORDER BY it.claim_at, it.tenant_id COLLATE "C", it.id
    LIMIT $3::bigint
    FOR UPDATE OF it SKIP LOCKED
),
taken AS (SELECT *, row_number() OVER (ORDER BY claim_at, tenant_id COLLATE "C", id) AS number FROM found),
leased AS (
    UPDATE cron_triggers AS it
    SET owner = $2::text, token = it.token + 1, leased_until = clock.at + $4::interval, reason = ''
    FROM taken, clock
    WHERE it.tenant_id = taken.tenant_id AND it.id = taken.id
    RETURNING it.*, taken.enabled, taken.number
)
SELECT leased.*, clock.at AS claimed_at, job.*, lost.*
FROM leased CROSS JOIN clock
JOIN cron_jobs AS job ON job.tenant_id = leased.tenant_id AND job.id = leased.job
LEFT JOIN LATERAL (
    SELECT * FROM cron_run_logs AS run
    WHERE run.tenant_id = leased.tenant_id AND run.trigger = leased.id AND run.state = 'running'
    ORDER BY started_at, attempt, id LIMIT 1
) AS lost ON true
ORDER BY leased.number

-- name: held
-- $1 moment, $2 worker.
SELECT it.*, tenants.enabled, 0 AS number, coalesce($1::timestamptz, now()) AS claimed_at, job.*, lost.*
FROM cron_triggers AS it
JOIN tenants ON tenants.id = it.tenant_id
JOIN cron_jobs AS job ON job.tenant_id = it.tenant_id AND job.id = it.job
LEFT JOIN LATERAL (
    SELECT * FROM cron_run_logs AS run
    WHERE run.tenant_id = it.tenant_id AND run.trigger = it.id AND run.state = 'running'
    ORDER BY started_at, attempt, id LIMIT 1
) AS lost ON true
WHERE it.state = 'executing' AND it.owner = $2
ORDER BY it.tenant_id COLLATE "C", it.id

-- name: renew
-- $1 moment, $2 span, $3 claims (json). Answers those that were renewed.
WITH asked AS MATERIALIZED (
    SELECT DISTINCT tenant_id, id, token FROM json_to_recordset($3::json) AS one (tenant_id text, id text, token bigint)
),
locked AS MATERIALIZED (
    SELECT it.tenant_id, it.id, it.state, it.token, asked.token AS asked_token
    FROM asked JOIN cron_triggers AS it USING (tenant_id, id)
    ORDER BY it.tenant_id, it.job, it.id
    FOR UPDATE OF it
),
mine AS (SELECT * FROM locked WHERE state = 'executing' AND token = asked_token)
UPDATE cron_triggers AS it SET leased_until = coalesce($1::timestamptz, now()) + $2::interval
FROM mine
WHERE it.tenant_id = mine.tenant_id AND it.id = mine.id
RETURNING it.tenant_id, it.id, it.token

-- name: start
-- $1 moment, $2 starts (json), no trigger and no run twice. One row for each: its run, or nothing; `is_current` without a
-- run means that somebody else is just adding it, and asking again finds it. Counters come last, as in `write`.
WITH clock AS MATERIALIZED (SELECT coalesce($1::timestamptz, now()) AS at),
asked AS MATERIALIZED (
    SELECT * FROM json_to_recordset($2::json) AS one (place bigint, tenant_id text, id text, token bigint, run text)
),
locked AS MATERIALIZED (
    SELECT it.*, asked.run, asked.place, asked.token AS asked_token
    FROM asked JOIN cron_triggers AS it USING (tenant_id, id)
    ORDER BY it.tenant_id, it.job, it.id
    FOR UPDATE OF it
),
mine AS MATERIALIZED (SELECT * FROM locked WHERE state = 'executing' AND token = asked_token),
known AS MATERIALIZED (
    SELECT run.* FROM mine JOIN cron_run_logs AS run ON run.tenant_id = mine.tenant_id AND run.id = mine.run
),
fresh AS (
    INSERT INTO cron_run_logs AS run (
        tenant_id, id, job, trigger, attempt, agent, kind, source, worker, trace, started_at, lateness_us, state
    )
    SELECT tenant_id, mine.run, job, id, attempt + 1, agent, kind, source, owner, trace, clock.at,
        greatest(0, (extract(epoch FROM clock.at - due_at) * 1000000)::bigint), 'running'
    FROM mine, clock
    WHERE NOT EXISTS (SELECT FROM known WHERE known.tenant_id = mine.tenant_id AND known.id = mine.run)
    ON CONFLICT DO NOTHING
    RETURNING run.*
),
counted AS (
    UPDATE cron_triggers AS it SET attempt = fresh.attempt
    FROM fresh
    WHERE it.tenant_id = fresh.tenant_id AND it.id = fresh.trigger
    RETURNING it.id
),
numbered AS (
    INSERT INTO cron_counters AS known (tenant_id, news)
    SELECT tenant_id, count(*) FROM fresh WHERE (SELECT count(*) FROM counted) >= 0
    GROUP BY tenant_id ORDER BY tenant_id
    ON CONFLICT (tenant_id) DO UPDATE SET news = known.news + excluded.news
    RETURNING tenant_id, news
),
told AS (
    INSERT INTO notifications (tenant_id, seq, at, kind, job, run, data)
    SELECT fresh.tenant_id,
        numbered.news + 1 - row_number() OVER (PARTITION BY fresh.tenant_id ORDER BY mine.place DESC),
        clock.at, 'run.started', fresh.job, fresh.id,
        json_build_object('agent', fresh.agent, 'status', fresh.state, 'attempt', fresh.attempt, 'trace', fresh.trace)
    FROM fresh CROSS JOIN clock
    JOIN numbered ON numbered.tenant_id = fresh.tenant_id
    JOIN mine ON mine.tenant_id = fresh.tenant_id AND mine.run = fresh.id
),
heard AS MATERIALIZED (
    SELECT pg_notify('goclaw', word) FROM (SELECT 'notification:' || tenant_id || ':' || news AS word FROM numbered) AS one
    WHERE octet_length(word) < 8000
)
SELECT run.*, asked.place, mine.id IS NOT NULL AS is_current, (SELECT count(*) FROM heard) AS heard
FROM asked
LEFT JOIN mine USING (place)
LEFT JOIN (SELECT * FROM fresh UNION ALL SELECT * FROM known) AS run
    ON run.tenant_id = asked.tenant_id AND run.id = asked.run
ORDER BY asked.place

-- ── what a decision leaves, in one transaction ──────────────────────────────────────────────────────────────────────

-- name: lock_jobs
-- $1 moment, $2 tenants and $3 numbers of the jobs. What they are when nobody else is at work on them. Their triggers are
-- looked at in a statement of their own: this one may have waited, and sees only what was there before that.
SELECT job.*, coalesce($1::timestamptz, now()) AS now
FROM unnest($2::text[], $3::bigint[]) AS asked (tenant_id, id) JOIN cron_jobs AS job USING (tenant_id, id)
ORDER BY job.tenant_id, job.id
FOR NO KEY UPDATE OF job

-- name: open_triggers
-- $1 tenants, $2 numbers of jobs that are locked. Their open triggers, with the runs of these that go on.
SELECT it.*, run.*
FROM unnest($1::text[], $2::bigint[]) AS asked (tenant_id, job)
JOIN cron_triggers AS it ON it.tenant_id = asked.tenant_id AND it.job = asked.job AND it.claim_at IS NOT NULL
LEFT JOIN cron_run_logs AS run ON run.tenant_id = it.tenant_id AND run.trigger = it.id AND run.state = 'running'
ORDER BY it.tenant_id, it.job, it.id
FOR UPDATE OF it

-- name: tokens
-- $1 tenants, $2 ids of triggers: those that are there.
SELECT it.tenant_id, it.id, it.token
FROM unnest($1::text[], $2::text[]) AS asked (tenant_id, id) JOIN cron_triggers AS it USING (tenant_id, id)

-- name: withdraw
-- $1 tenants, $2 ids of triggers.
DELETE FROM cron_triggers AS it
USING unnest($1::text[], $2::text[]) AS asked (tenant_id, id)
WHERE it.tenant_id = asked.tenant_id AND it.id = asked.id

-- name: put_jobs
-- $1 jobs (json): new ones, and those that were edited.
INSERT INTO cron_jobs
SELECT * FROM json_populate_recordset(NULL::cron_jobs, $1::json)
ON CONFLICT (tenant_id, id) DO UPDATE SET
    agent = excluded.agent, name = excluded.name, message = excluded.message, kind = excluded.kind,
    zone = excluded.zone, at = excluded.at, every_us = excluded.every_us, cron = excluded.cron, rules = excluded.rules,
    deliver_to = excluded.deliver_to, session_kind = excluded.session_kind, session_name = excluded.session_name,
    work_source = excluded.work_source, owner = excluded.owner, made_by_agent = excluded.made_by_agent,
    updated_at = excluded.updated_at, status = excluded.status, reason = excluded.reason, hint_us = excluded.hint_us,
    hint_at = excluded.hint_at, hint_expires_at = excluded.hint_expires_at, hint_reason = excluded.hint_reason,
    paused_until = excluded.paused_until, failures = excluded.failures, runs = excluded.runs,
    last_run_at = excluded.last_run_at, last_run = excluded.last_run, last_state = excluded.last_state,
    last_slot = excluded.last_slot, next_at = excluded.next_at, next_source = excluded.next_source

-- name: say
-- $1 moment, $2 outputs, $3 notes, $4 said (each json).
WITH outputs AS (
    INSERT INTO cron_outputs (tenant_id, run, written_at, body)
    SELECT tenant_id, run, $1::timestamptz, body
    FROM json_to_recordset($2::json) AS one (tenant_id text, run text, body text)
    ON CONFLICT (tenant_id, run) DO UPDATE SET body = excluded.body, written_at = excluded.written_at
),
replies AS (
    INSERT INTO outbox (tenant_id, session, address, body, urgent, run, answers)
    SELECT tenant_id, session, address, body, urgent, run, '{}'
    FROM json_to_recordset($3::json) AS one (
        place bigint, tenant_id text, session text, address text, body text, urgent boolean, run text
    )
    ORDER BY place
    RETURNING id
),
said AS MATERIALIZED (
    SELECT one.*, row_number() OVER (PARTITION BY session ORDER BY place) AS nth
    FROM json_to_recordset($4::json) AS one (
        place bigint, tenant_id text, session text, role text, body text, data json
    )
),
kept AS (
    INSERT INTO sessions AS known (tenant_id, session, lines, updated_at)
    SELECT tenant_id, session, count(*), $1 FROM said GROUP BY tenant_id, session ORDER BY tenant_id, session
    ON CONFLICT (tenant_id, session) DO UPDATE SET
        lines = known.lines + excluded.lines, updated_at = excluded.updated_at
    RETURNING tenant_id, session, lines
),
written AS (
    INSERT INTO session_messages (tenant_id, session, number, said_at, role, body, data)
    SELECT kept.tenant_id, kept.session,
        kept.lines - (SELECT count(*) FROM said AS all_of WHERE all_of.session = kept.session) + said.nth,
        $1, said.role, said.body, said.data
    FROM kept JOIN said USING (tenant_id, session)
)
SELECT pg_notify('goclaw', 'outbox') FROM replies LIMIT 1

-- name: write
-- $1 moment, $2 jobs, $3 triggers, $4 runs, $5 news (each json), $6 words for whoever listens. Triggers that have ended
-- come first: they make way for others. Counters come last, since whoever holds one holds up its whole tenant; what only
-- stands before them would be written after them, so they wait for the number of rows that were.
WITH jobs AS (
    UPDATE cron_jobs AS job SET
        updated_at = one.updated_at, status = one.status, reason = one.reason, hint_us = one.hint_us,
        hint_at = one.hint_at, hint_expires_at = one.hint_expires_at, hint_reason = one.hint_reason,
        paused_until = one.paused_until, failures = one.failures, runs = one.runs, last_run_at = one.last_run_at,
        last_run = one.last_run, last_state = one.last_state, last_slot = one.last_slot, next_at = one.next_at,
        next_source = one.next_source
    FROM json_to_recordset($2::json) AS one (
        tenant_id text, id bigint, updated_at timestamptz, status text, reason text, hint_us bigint,
        hint_at timestamptz, hint_expires_at timestamptz, hint_reason text, paused_until timestamptz, failures bigint,
        runs bigint, last_run_at timestamptz, last_run text, last_state text, last_slot timestamptz,
        next_at timestamptz, next_source text
    )
    WHERE job.tenant_id = one.tenant_id AND job.id = one.id
    RETURNING job.id
),
triggers AS (
    INSERT INTO cron_triggers (
        tenant_id, id, job, agent, kind, slot, due_at, created_at, state, reason, source, key, trace, attempt, token,
        owner, leased_until, last, count, ended_at
    )
    SELECT tenant_id, id, job, agent, kind, slot, due_at, created_at, state, reason, source, key, trace, attempt, token,
        owner, leased_until, last, count, ended_at
    FROM json_to_recordset($3::json) AS one (
        place bigint, tenant_id text, id text, job bigint, agent text, kind text, slot timestamptz, due_at timestamptz,
        created_at timestamptz, state text, reason text, source text, key text, trace text, attempt bigint,
        token bigint, owner text, leased_until timestamptz, last timestamptz, count bigint, ended_at timestamptz
    )
    ORDER BY place
    ON CONFLICT (tenant_id, id) DO UPDATE SET
        agent = excluded.agent, kind = excluded.kind, slot = excluded.slot, due_at = excluded.due_at,
        state = excluded.state, reason = excluded.reason, source = excluded.source, trace = excluded.trace,
        attempt = excluded.attempt, owner = excluded.owner, leased_until = excluded.leased_until, last = excluded.last,
        count = excluded.count, ended_at = excluded.ended_at
    RETURNING id
),
runs AS (
    UPDATE cron_run_logs AS run SET
        state = one.state, ended_at = one.ended_at, summary = one.summary, error = one.error,
        tokens_in = one.tokens_in, tokens_out = one.tokens_out, delivery = one.delivery
    FROM json_to_recordset($4::json) AS one (
        tenant_id text, id text, state text, ended_at timestamptz, summary text, error text, tokens_in bigint,
        tokens_out bigint, delivery text
    )
    WHERE run.tenant_id = one.tenant_id AND run.id = one.id
    RETURNING run.id
),
written AS MATERIALIZED (
    SELECT (SELECT count(*) FROM jobs) + (SELECT count(*) FROM triggers) + (SELECT count(*) FROM runs) AS rows
),
news AS MATERIALIZED (
    SELECT one.*, row_number() OVER (PARTITION BY tenant_id ORDER BY place DESC) AS from_last
    FROM json_to_recordset($5::json) AS one (
        place bigint, tenant_id text, kind text, job bigint, run text, data json
    )
),
numbered AS (
    INSERT INTO cron_counters AS known (tenant_id, news)
    SELECT tenant_id, count(*) FROM news WHERE (SELECT rows FROM written) >= 0
    GROUP BY tenant_id ORDER BY tenant_id
    ON CONFLICT (tenant_id) DO UPDATE SET news = known.news + excluded.news
    RETURNING tenant_id, news
),
told AS (
    INSERT INTO notifications (tenant_id, seq, at, kind, job, run, data)
    SELECT tenant_id, numbered.news + 1 - from_last, $1::timestamptz, kind, job, run, data
    FROM news JOIN numbered USING (tenant_id)
)
SELECT pg_notify('goclaw', word)
FROM (
    SELECT unnest($6::text[]) AS word
    UNION ALL
    SELECT 'notification:' || tenant_id || ':' || news FROM numbered
) AS one
WHERE octet_length(word) < 8000

-- name: remove
-- $1 tenants, $2 numbers of jobs.
DELETE FROM cron_jobs AS job
USING unnest($1::text[], $2::bigint[]) AS asked (tenant_id, id)
WHERE job.tenant_id = asked.tenant_id AND job.id = asked.id

-- ── what happened ───────────────────────────────────────────────────────────────────────────────────────────────────

-- name: runs
-- $1 tenant, $2 how many; newest first.
SELECT * FROM cron_run_logs WHERE tenant_id = $1 ORDER BY started_at DESC, id DESC LIMIT $2::bigint

-- name: runs_of_job
-- $1 tenant, $2 how many, $3 job; newest first.
SELECT * FROM cron_run_logs WHERE tenant_id = $1 AND job = $3 ORDER BY started_at DESC, id DESC LIMIT $2::bigint

-- name: runs_since
-- $1 tenant, $2 how many, $3 from when on; oldest first.
SELECT * FROM cron_run_logs WHERE tenant_id = $1 AND started_at >= $3 ORDER BY started_at, id LIMIT $2::bigint

-- name: runs_of_job_since
-- $1 tenant, $2 how many, $3 job, $4 from when on; oldest first.
SELECT * FROM cron_run_logs WHERE tenant_id = $1 AND job = $3 AND started_at >= $4
ORDER BY started_at, id
LIMIT $2::bigint

-- name: run
-- $1 tenant, $2 id.
SELECT * FROM cron_run_logs WHERE tenant_id = $1 AND id = $2

-- name: output
-- $1 tenant, $2 run.
SELECT coalesce(whole.body, run.summary) AS body
FROM cron_run_logs AS run LEFT JOIN cron_outputs AS whole ON whole.tenant_id = run.tenant_id AND whole.run = run.id
WHERE run.tenant_id = $1 AND run.id = $2

-- name: notifications
-- $1 tenant, $2 after, $3 how many.
SELECT * FROM notifications WHERE tenant_id = $1 AND seq > $2::bigint ORDER BY seq LIMIT $3::bigint

-- name: told
-- $1 tenant.
SELECT news FROM cron_counters WHERE tenant_id = $1

-- name: counts
-- $1 tenant.
SELECT
    count(*) FILTER (WHERE status = 'active') AS active,
    count(*) FILTER (WHERE status = 'paused') AS paused,
    (SELECT count(*) FROM cron_triggers WHERE tenant_id = $1 AND claim_at IS NOT NULL AND state = 'pending') AS pending,
    (SELECT count(*) FROM cron_triggers WHERE tenant_id = $1 AND claim_at IS NOT NULL AND state = 'executing')
        AS executing
FROM cron_jobs WHERE tenant_id = $1 AND status IN ('active', 'paused')

-- ── tidying ─────────────────────────────────────────────────────────────────────────────────────────────────────────

-- name: tidy_jobs
-- $1 moment, $2 for how long ended jobs are kept, $3 how many may go. Their history goes with them.
WITH gone AS (
    DELETE FROM cron_jobs WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM cron_jobs
        WHERE status IN ('completed', 'failed', 'cancelled')
            AND updated_at <= coalesce($1::timestamptz, now()) - $2::interval
        ORDER BY updated_at LIMIT $3::bigint
        FOR UPDATE SKIP LOCKED
    )) RETURNING id
)
SELECT count(*) AS went FROM gone

-- name: tidy
-- $1 moment, $2 for how long triggers and runs are kept, $3 whole outputs, $4 notifications, $5 how many of each may go.
-- A row that moves while it is being locked is left for the next round.
WITH clock AS (SELECT coalesce($1::timestamptz, now()) AS moment),
triggers AS (
    DELETE FROM cron_triggers WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM cron_triggers WHERE ended_at <= (SELECT moment FROM clock) - $2::interval
        ORDER BY ended_at LIMIT $5::bigint
        FOR UPDATE SKIP LOCKED
    )) RETURNING id
),
outputs AS (
    DELETE FROM cron_outputs WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM cron_outputs WHERE written_at <= (SELECT moment FROM clock) - $3::interval
        ORDER BY written_at LIMIT $5
        FOR UPDATE SKIP LOCKED
    )) RETURNING run
),
runs AS (
    DELETE FROM cron_run_logs WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM cron_run_logs WHERE ended_at <= (SELECT moment FROM clock) - $2
        ORDER BY ended_at LIMIT $5
        FOR UPDATE SKIP LOCKED
    )) RETURNING id
),
news AS (
    DELETE FROM notifications WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM notifications WHERE at <= (SELECT moment FROM clock) - $4::interval
        ORDER BY at LIMIT $5
        FOR UPDATE SKIP LOCKED
    )) RETURNING seq
)
SELECT (SELECT count(*) FROM triggers) + (SELECT count(*) FROM outputs) + (SELECT count(*) FROM runs)
    + (SELECT count(*) FROM news) AS went
