-- Who was let in, who knocks and who was turned away: one row for each sender, who can be in one tenant only. A row has
-- no tenant until somebody is let in, so it cannot lead the key.

CREATE TABLE pairings (
    tenant_id  text REFERENCES tenants ON DELETE CASCADE,
    channel    text NOT NULL,
    account    text NOT NULL,
    sender     text NOT NULL,
    name       text NOT NULL,
    digest     text NOT NULL,
    state      text NOT NULL,
    asked_at   timestamptz NOT NULL,
    decided_by text NOT NULL DEFAULT '',
    decided_at timestamptz,
    PRIMARY KEY (channel, account, sender),
    CONSTRAINT pairings_state CHECK (state IN ('pending', 'denied', 'approved')),
    CONSTRAINT pairings_tenant CHECK ((tenant_id IS NOT NULL) = (state = 'approved')),
    CONSTRAINT pairings_decided CHECK ((decided_at IS NULL) = (state = 'pending'))
);
COMMENT ON TABLE pairings IS 'A code itself is nowhere: digest is its SHA-256 in hexadecimal.';

CREATE UNIQUE INDEX pairings_code ON pairings (digest);
CREATE INDEX pairings_of ON pairings (tenant_id) WHERE tenant_id IS NOT NULL;
CREATE INDEX pairings_open ON pairings (channel, account) WHERE tenant_id IS NULL;
