-- Jobs, what fires them, and what came of it. Spans are microseconds. Readers go by the order of the columns
-- (store/postgres/cron_rows.py), so that a new one belongs at the end of its table.
--
-- Primary keys are made after the other indexes. While a table is new all indexes look alike to the planner, and then it
-- takes the newest; a plan that it has kept since then has to be a good one when the table has grown.

CREATE TABLE cron_jobs (
    tenant_id       text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    id              bigint NOT NULL CHECK (id > 0),
    uid             text NOT NULL,
    agent           text NOT NULL,
    name            text NOT NULL,
    message         text NOT NULL,
    kind            text NOT NULL CHECK (kind IN ('at', 'every', 'cron', 'webhook')),
    zone            text NOT NULL,
    at              timestamptz,
    every_us        bigint,
    cron            text NOT NULL,
    rules           json NOT NULL,
    deliver_to      text,
    session_kind    text NOT NULL CHECK (session_kind IN ('fresh', 'named', 'chat')),
    session_name    text NOT NULL,
    work_source     text NOT NULL,
    owner           text NOT NULL,
    made_by_agent   boolean NOT NULL,
    created_at      timestamptz NOT NULL,
    updated_at      timestamptz NOT NULL,
    status          text NOT NULL CHECK (status IN ('active', 'paused', 'completed', 'failed', 'cancelled')),
    reason          text NOT NULL,
    hint_us         bigint,
    hint_at         timestamptz,
    hint_expires_at timestamptz,
    hint_reason     text NOT NULL,
    paused_until    timestamptz,
    failures        bigint NOT NULL,
    runs            bigint NOT NULL,
    last_run_at     timestamptz,
    last_run        text NOT NULL,
    last_state      text CHECK (last_state IN ('running', 'succeeded', 'failed', 'timeout', 'cancelled')),
    last_slot       timestamptz,
    next_at         timestamptz,
    next_source     text CONSTRAINT cron_jobs_next_source CHECK (next_source IN (
        'baseline-cron', 'baseline-interval', 'ai-interval', 'ai-oneshot', 'clamped-min', 'clamped-max', 'paused'
    )),
    CONSTRAINT cron_jobs_uid UNIQUE (tenant_id, uid)
) WITH (fillfactor = 80);
COMMENT ON TABLE cron_jobs IS 'id counts from 1 inside a tenant. rules holds only what differs from the usual.';

CREATE INDEX cron_jobs_living ON cron_jobs (tenant_id, agent, id) WHERE status IN ('active', 'paused');
CREATE INDEX cron_jobs_next_at ON cron_jobs (next_at) WHERE status = 'active' AND kind <> 'webhook';
CREATE INDEX cron_jobs_ended ON cron_jobs (updated_at) WHERE status IN ('completed', 'failed', 'cancelled');
ALTER TABLE cron_jobs ADD PRIMARY KEY (tenant_id, id);

-- `claim_at` follows from the other columns, so that no statement can forget it.

CREATE TABLE cron_triggers (
    tenant_id    text NOT NULL,
    id           text COLLATE "C" NOT NULL,
    job          bigint NOT NULL,
    agent        text NOT NULL,
    kind         text NOT NULL CHECK (kind IN ('schedule', 'manual', 'catch-up', 'webhook')),
    slot         timestamptz NOT NULL,
    due_at       timestamptz NOT NULL,
    created_at   timestamptz NOT NULL,
    state        text NOT NULL CHECK (state IN ('pending', 'executing', 'completed', 'failed', 'skipped')),
    reason       text NOT NULL,
    source       text CONSTRAINT cron_triggers_source CHECK (source IN (
        'baseline-cron', 'baseline-interval', 'ai-interval', 'ai-oneshot', 'clamped-min', 'clamped-max', 'paused'
    )),
    key          text,
    trace        text NOT NULL,
    attempt      bigint NOT NULL,
    token        bigint NOT NULL,
    owner        text NOT NULL,
    leased_until timestamptz,
    last         timestamptz,
    count        bigint NOT NULL,
    ended_at     timestamptz,
    claim_at     timestamptz GENERATED ALWAYS AS (
        CASE state WHEN 'pending' THEN due_at WHEN 'executing' THEN leased_until END
    ) STORED,
    FOREIGN KEY (tenant_id, job) REFERENCES cron_jobs ON DELETE CASCADE,
    CONSTRAINT cron_triggers_leased CHECK ((leased_until IS NOT NULL) = (state = 'executing')),
    CONSTRAINT cron_triggers_ended CHECK ((ended_at IS NULL) = (state IN ('pending', 'executing')))
) WITH (fillfactor = 80);
COMMENT ON TABLE cron_triggers IS 'Occurrences to fire: the only thing that is claimed. claim_at is null for what has ended.';

-- No two planned triggers of a job have the same slot; what is fired beside the schedule may. Lists go by it too.
CREATE UNIQUE INDEX cron_triggers_slot ON cron_triggers (
    tenant_id, job, slot, (CASE WHEN kind IN ('schedule', 'catch-up') THEN '' ELSE id END)
);
CREATE INDEX cron_triggers_ended_at ON cron_triggers (ended_at) WHERE ended_at IS NOT NULL;
CREATE UNIQUE INDEX cron_triggers_key ON cron_triggers (tenant_id, key) WHERE key IS NOT NULL;
CREATE INDEX cron_triggers_due ON cron_triggers (claim_at) WHERE claim_at IS NOT NULL;
CREATE INDEX cron_triggers_claim ON cron_triggers (tenant_id, claim_at, id) WHERE claim_at IS NOT NULL;
CREATE INDEX cron_triggers_open ON cron_triggers (tenant_id, job, claim_at, id) WHERE claim_at IS NOT NULL;
-- A job never runs beside itself.
CREATE UNIQUE INDEX cron_triggers_executing ON cron_triggers (tenant_id, job) WHERE state = 'executing';
-- An active recurring job has one open planned trigger: this half of it the database sees to.
CREATE UNIQUE INDEX cron_triggers_planned ON cron_triggers (tenant_id, job)
    WHERE kind IN ('schedule', 'catch-up') AND state IN ('pending', 'executing');
ALTER TABLE cron_triggers ADD PRIMARY KEY (tenant_id, id);

CREATE TABLE cron_run_logs (
    tenant_id      text NOT NULL,
    id             text COLLATE "C" NOT NULL,
    job            bigint NOT NULL,
    trigger        text COLLATE "C" NOT NULL,
    attempt        bigint NOT NULL,
    agent          text NOT NULL,
    kind           text NOT NULL CHECK (kind IN ('schedule', 'manual', 'catch-up', 'webhook')),
    source         text CONSTRAINT cron_run_logs_source CHECK (source IN (
        'baseline-cron', 'baseline-interval', 'ai-interval', 'ai-oneshot', 'clamped-min', 'clamped-max', 'paused'
    )),
    worker         text NOT NULL,
    trace          text NOT NULL,
    started_at     timestamptz NOT NULL,
    lateness_us    bigint NOT NULL,
    state          text NOT NULL CHECK (state IN ('running', 'succeeded', 'failed', 'timeout', 'cancelled')),
    ended_at       timestamptz,
    summary        text NOT NULL DEFAULT '',
    error          text NOT NULL DEFAULT '',
    tokens_in      bigint NOT NULL DEFAULT 0,
    tokens_out     bigint NOT NULL DEFAULT 0,
    delivery       text NOT NULL DEFAULT 'none' CHECK (delivery IN ('none', 'waiting', 'delivered', 'failed')),
    delivery_error text NOT NULL DEFAULT '',
    FOREIGN KEY (tenant_id, job) REFERENCES cron_jobs ON DELETE CASCADE
) WITH (fillfactor = 80);
COMMENT ON TABLE cron_run_logs IS 'Attempts, each with the beginning of what it said. They outlive their triggers.';

CREATE INDEX cron_run_logs_started ON cron_run_logs (tenant_id, started_at, id);
CREATE INDEX cron_run_logs_job ON cron_run_logs (tenant_id, job, started_at, id);
CREATE INDEX cron_run_logs_running ON cron_run_logs (tenant_id, trigger) WHERE state = 'running';
CREATE INDEX cron_run_logs_ended_at ON cron_run_logs (ended_at) WHERE ended_at IS NOT NULL;
ALTER TABLE cron_run_logs ADD PRIMARY KEY (tenant_id, id);

CREATE TABLE cron_outputs (
    tenant_id  text NOT NULL,
    run        text COLLATE "C" NOT NULL,
    written_at timestamptz NOT NULL,
    body       text NOT NULL,
    PRIMARY KEY (tenant_id, run),
    FOREIGN KEY (tenant_id, run) REFERENCES cron_run_logs ON DELETE CASCADE
);
COMMENT ON TABLE cron_outputs IS 'All that a run said, if its summary does not hold it.';

CREATE INDEX cron_outputs_written_at ON cron_outputs (written_at);

-- What is told about runs. The counter is raised in the transaction that adds the row and stays locked until that is
-- committed: numbers have no gaps and can be seen in their order, which those of a sequence could not.

CREATE TABLE cron_counters (
    tenant_id text PRIMARY KEY REFERENCES tenants ON DELETE CASCADE,
    jobs      bigint NOT NULL DEFAULT 0,
    news      bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 20);
COMMENT ON TABLE cron_counters IS 'The highest number that a job and a notification of the tenant ever had.';

CREATE TABLE notifications (
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    seq       bigint NOT NULL,
    at        timestamptz NOT NULL,
    kind      text NOT NULL CHECK (kind IN ('run.started', 'run.completed', 'run.failed', 'run.skipped')),
    job       bigint NOT NULL,
    run       text NOT NULL,
    data      json NOT NULL,
    PRIMARY KEY (tenant_id, seq)
);
COMMENT ON TABLE notifications IS 'What happened to jobs, for whoever reads on from a number.';

CREATE INDEX notifications_at ON notifications (at);

ALTER TABLE outbox ADD COLUMN run text NOT NULL DEFAULT '';
COMMENT ON COLUMN outbox.run IS 'The cron run that says it; empty for an answer to somebody.';
