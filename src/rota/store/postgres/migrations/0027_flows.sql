-- Flows: jobs that wait for jobs.
-- Expands: older code knows nothing of the tables. It runs and settles the jobs of flows and does not say that they have
-- ended: let all workers be new before flows are built.

-- Jobs that wait for jobs (docs/how/engine.md, "Flows"). Each job of a node is a job like any other, which carries the node's
-- id in its header `rota.node`; those of a node that waits lie in the timer, a century from now. What happens to nodes is
-- appended: changed are only rows of flows that a user retries or stops.
CREATE TABLE rota.flow (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    created_at timestamptz NOT NULL DEFAULT now(),
    deadline   timestamptz,
    keep       float8 NOT NULL,               -- seconds for which it stays after its end
    round      integer NOT NULL DEFAULT 0,    -- how often it was retried
    name       text NOT NULL
);
CREATE INDEX flow_name ON rota.flow (name, id);

-- `expects` is how many jobs a node has, and their ids lie from `first_job` to `last_job`. `round` counts how often it was
-- opened again, `touched` how often a user has retried some of its jobs: see flows/end.sql.
CREATE SEQUENCE rota.flow_node_id AS bigint;
CREATE TABLE rota.flow_node (
    id        bigint PRIMARY KEY,
    flow      bigint NOT NULL,
    first_job bigint,
    last_job  bigint,
    run_at    timestamptz,                    -- before which its jobs do not begin
    delay     float8,                         -- seconds that its jobs wait after the node's release
    expects   integer NOT NULL,
    round     integer NOT NULL DEFAULT 0,
    touched   integer NOT NULL DEFAULT 0,
    many      boolean NOT NULL,
    fail_fast boolean NOT NULL,
    name      text NOT NULL,
    task      text NOT NULL,
    queue     text NOT NULL
);
CREATE UNIQUE INDEX flow_node_name ON rota.flow_node (flow, name);
CREATE INDEX flow_node_order ON rota.flow_node (flow, id);

-- `node` waits for `after`.
CREATE TABLE rota.flow_edge (
    node      bigint NOT NULL,
    after     bigint NOT NULL,
    condition text NOT NULL CHECK (condition IN ('completed', 'finished', 'failed')),
    PRIMARY KEY (node, after, condition)
);
CREATE INDEX flow_edge_after ON rota.flow_edge (after, node);

-- How many jobs of a node have ended how: one row for each node and settlement, in its transaction. A retry by hand appends
-- a negative one. The sums count.
CREATE TABLE rota.flow_arrival (
    node      bigint NOT NULL,
    xid       xid8 NOT NULL DEFAULT pg_current_xact_id(),
    completed integer NOT NULL DEFAULT 0,
    failed    integer NOT NULL DEFAULT 0,
    cancelled integer NOT NULL DEFAULT 0
);
CREATE INDEX flow_arrival_node ON rota.flow_arrival (node);
CREATE INDEX flow_arrival_xid ON rota.flow_arrival (xid);

-- What was decided of a node in a round. The key lets it be decided once.
CREATE TABLE rota.flow_fact (
    node    bigint NOT NULL,
    xid     xid8 NOT NULL DEFAULT pg_current_xact_id(),
    at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    round   integer NOT NULL,
    fact    text NOT NULL CHECK (fact IN ('released', 'ended')),
    outcome text CHECK (outcome IN ('completed', 'failed', 'cancelled', 'skipped')),
    reason  text,
    PRIMARY KEY (node, round, fact),
    CHECK ((fact = 'ended') = (outcome IS NOT NULL))
);
CREATE INDEX flow_fact_xid ON rota.flow_fact (xid);

-- The end of a flow, of each of its rounds.
CREATE TABLE rota.flow_end (
    flow       bigint NOT NULL,
    at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    keep_until timestamptz NOT NULL,
    round      integer NOT NULL,
    outcome    text NOT NULL CHECK (outcome IN ('completed', 'failed', 'cancelled')),
    reason     text,
    PRIMARY KEY (flow, round)
);
CREATE INDEX flow_end_kept ON rota.flow_end (keep_until, flow);

-- Flows that are to be cancelled from `since` on, and when a worker looks after that next. There are few.
CREATE TABLE rota.flow_stop (
    flow   bigint PRIMARY KEY,
    since  timestamptz NOT NULL,
    next   timestamptz NOT NULL,
    reason text NOT NULL
);
CREATE INDEX flow_stop_next ON rota.flow_stop (next);

-- The results of jobs that others are given; as long as the flow is there.
CREATE TABLE rota.flow_result (
    node  bigint NOT NULL,
    job   bigint NOT NULL,
    value json NOT NULL,
    PRIMARY KEY (node, job)
);

-- In which snapshot it was last looked what is to be decided; the highest seq counts.
CREATE TABLE rota.flow_mark (
    seq      bigint PRIMARY KEY,
    snapshot pg_snapshot NOT NULL
);
INSERT INTO rota.flow_mark VALUES (0, pg_current_snapshot());

-- Up to which second flows past their retention have been removed.
CREATE SEQUENCE rota.flow_pruned MINVALUE 0 START 0;

-- Under a publication PostgreSQL refuses to delete rows that it cannot name to a subscriber.
ALTER TABLE rota.flow_arrival REPLICA IDENTITY FULL;
