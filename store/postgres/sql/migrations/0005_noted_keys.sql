-- What idempotency keys were first used for, so that the same key for something else is refused.

CREATE TABLE noted_keys (
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    key       text NOT NULL,
    meaning   text NOT NULL,
    noted_at  timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, key)
);
CREATE INDEX noted_keys_by_age ON noted_keys (noted_at);
