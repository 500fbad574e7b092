-- Flows: jobs that wait for jobs.
-- Expands: older code knows nothing of the tables. It runs and settles the jobs of flows and does not say that they have
-- ended: let all workers be new before flows are built.

-- Jobs that wait for jobs. Each job of a node is a job like any other, which carries the node's id in its header
-- `rota.node`; those of a node that waits are scheduled for a century from now. What happens to nodes is appended: changed
-- are only rows of flows that a user retries or stops.
CREATE TABLE rota_flow (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    name       TEXT NOT NULL,
    created_at REAL NOT NULL,
    deadline   REAL,
    keep       REAL NOT NULL,                 -- seconds for which it stays after its end
    round      INTEGER NOT NULL DEFAULT 0     -- how often it was retried
) STRICT;
CREATE INDEX rota_flow_name ON rota_flow (name, id);

-- `expects` is how many jobs a node has, and their ids lie from `first_job` to `last_job`. `round` counts how often it was
-- opened again.
CREATE TABLE rota_flow_node (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    flow      INTEGER NOT NULL,
    name      TEXT NOT NULL,
    task      TEXT NOT NULL,
    queue     TEXT NOT NULL,
    expects   INTEGER NOT NULL,
    first_job INTEGER,
    last_job  INTEGER,
    run_at    REAL,                           -- before which its jobs do not begin
    delay     REAL,                           -- seconds that its jobs wait after the node's release
    round     INTEGER NOT NULL DEFAULT 0,
    many      INTEGER NOT NULL CHECK (many IN (0, 1)),
    fail_fast INTEGER NOT NULL CHECK (fail_fast IN (0, 1)),
    UNIQUE (flow, name)
) STRICT;
CREATE INDEX rota_flow_node_order ON rota_flow_node (flow, id);

-- `node` waits for `after`.
CREATE TABLE rota_flow_edge (
    node      INTEGER NOT NULL,
    after     INTEGER NOT NULL,
    condition TEXT NOT NULL CHECK (condition IN ('completed', 'finished', 'failed')),
    PRIMARY KEY (node, after, condition)
) STRICT, WITHOUT ROWID;
CREATE INDEX rota_flow_edge_after ON rota_flow_edge (after, node);

-- How many jobs of a node have ended how: one row for each node and settlement, in its transaction. A retry by hand appends
-- a negative one. The sums count.
CREATE TABLE rota_flow_arrival (
    node      INTEGER NOT NULL,
    completed INTEGER NOT NULL DEFAULT 0,
    failed    INTEGER NOT NULL DEFAULT 0,
    cancelled INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX rota_flow_arrival_node ON rota_flow_arrival (node);

-- What was decided of a node in a round. The key lets it be decided once.
CREATE TABLE rota_flow_fact (
    node    INTEGER NOT NULL,
    round   INTEGER NOT NULL,
    fact    TEXT NOT NULL CHECK (fact IN ('released', 'ended')),
    at      REAL NOT NULL,
    outcome TEXT CHECK (outcome IN ('completed', 'failed', 'cancelled', 'skipped')),
    reason  TEXT,
    PRIMARY KEY (node, round, fact),
    CHECK ((fact = 'ended') = (outcome IS NOT NULL))
) STRICT, WITHOUT ROWID;

-- The end of a flow, of each of its rounds.
CREATE TABLE rota_flow_end (
    flow       INTEGER NOT NULL,
    round      INTEGER NOT NULL,
    at         REAL NOT NULL,
    keep_until REAL NOT NULL,
    outcome    TEXT NOT NULL CHECK (outcome IN ('completed', 'failed', 'cancelled')),
    reason     TEXT,
    PRIMARY KEY (flow, round)
) STRICT, WITHOUT ROWID;
CREATE INDEX rota_flow_end_kept ON rota_flow_end (keep_until);

-- Flows that are to be cancelled from `since` on, and when a worker looks after that next. There are few.
CREATE TABLE rota_flow_stop (
    flow   INTEGER PRIMARY KEY,
    since  REAL NOT NULL,
    next   REAL NOT NULL,
    reason TEXT NOT NULL
) STRICT;
CREATE INDEX rota_flow_stop_next ON rota_flow_stop (next);

-- The results of jobs that others are given; as long as the flow is there.
CREATE TABLE rota_flow_result (
    node  INTEGER NOT NULL,
    job   INTEGER NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (node, job)
) STRICT, WITHOUT ROWID;
