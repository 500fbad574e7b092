-- Rota's tables in SQLite as they are now: one row per job, and what is known of queues and workers.
--
-- A new file is made by this one in one step. A file of an older version comes to the same tables by
-- migrations/, step by step. A change of the tables is written twice, as a new migration and in here;
-- `python -m tests.store.schema` shows where the two differ, and a test fails if they do.
--
-- Moments are seconds since 1970 in UTC, as SQLite's own clock tells them, and durations are seconds.
-- Columns that a migration added stand at the end, as in the files that were migrated.

CREATE TABLE rota_schema (
    version    INTEGER PRIMARY KEY,
    applied_at REAL NOT NULL
) STRICT;

-- The oldest version whose code works with these tables. A migration that takes away what code of this version
-- still uses raises it.
CREATE VIEW rota_oldest_code AS SELECT 10 AS version;


-- Queues, limits and lanes ------------------------------------------------------------------------

CREATE TABLE rota_queue (
    name   TEXT PRIMARY KEY,
    paused INTEGER NOT NULL DEFAULT 0 CHECK (paused IN (0, 1))
) STRICT, WITHOUT ROWID;

-- What is set for single queues (`rota queues set`): one row for each queue that ever had a setting,
-- null where nothing is set. `discarded` may be infinity (9e999).
CREATE TABLE rota_queue_setting (
    queue        TEXT PRIMARY KEY,
    completed    REAL CHECK (completed >= 0 AND completed < 9e999),
    cancelled    REAL CHECK (cancelled >= 0 AND cancelled < 9e999),
    discarded    REAL CHECK (discarded >= 0),
    max_attempts INTEGER CHECK (max_attempts >= 1),
    timeout      REAL CHECK (timeout > 0 AND timeout < 9e999),
    concurrency  INTEGER CHECK (concurrency >= 1)
) STRICT, WITHOUT ROWID;

-- What limits the jobs of a key: so many at once, so many starts in so many seconds. The numbers come
-- from the code that enqueues, and change when they change there. No limit has the id 0.
CREATE TABLE rota_limit (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    key          TEXT NOT NULL UNIQUE,
    running      INTEGER,
    rate_count   INTEGER,
    rate_seconds REAL
) STRICT;

-- How many jobs of a limit with a rate started when; forgotten as soon as no window reaches back to it.
CREATE TABLE rota_limit_start (
    limit_id INTEGER NOT NULL,
    at       REAL NOT NULL,
    jobs     INTEGER NOT NULL
) STRICT;
CREATE INDEX rota_limit_start_order ON rota_limit_start (limit_id, at, jobs);

-- Jobs with a limit or a fair share lie in a lane: those of one queue and priority with the same keys.
-- `served` rises with each lease that had some of them, and with their places in it. Jobs without
-- such a key have no lane. A lane of a `task` has jobs that a worker has passed on which did not know that task.
CREATE TABLE rota_lane (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    queue    TEXT NOT NULL,
    priority INTEGER NOT NULL,
    limit_id INTEGER NOT NULL DEFAULT 0,
    fair     TEXT NOT NULL DEFAULT '',
    served   INTEGER NOT NULL DEFAULT 0,
    task     TEXT,
    UNIQUE (queue, priority, limit_id, fair)
) STRICT;

-- claim: which lane of a queue is next: first the one that was served longest ago.
CREATE INDEX rota_lane_order ON rota_lane (queue, priority, served);


-- Workers and what they hold ----------------------------------------------------------------------

CREATE TABLE rota_session (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    host       TEXT NOT NULL,
    pid        INTEGER NOT NULL,
    queues     TEXT NOT NULL,
    timeout    REAL NOT NULL CHECK (timeout >= 0),
    opened_at  REAL NOT NULL,
    renewed_at REAL NOT NULL,
    silent_at  REAL,
    ended_at   REAL,
    -- The suspects that it began last, a JSON array of ids; see rota/model/suspects.py.
    lot        TEXT,
    -- The tasks that it knows, a JSON array; null: it does not say.
    tasks      TEXT
) STRICT;

CREATE INDEX rota_session_alive ON rota_session (id) WHERE ended_at IS NULL;

-- The last lease that was handed out: one row.
CREATE TABLE rota_lease (
    one  INTEGER PRIMARY KEY CHECK (one = 1),
    last INTEGER NOT NULL
) STRICT;

INSERT INTO rota_lease (one, last) VALUES (1, 0);


-- Jobs --------------------------------------------------------------------------------------------

-- AUTOINCREMENT: the id of a deleted job is never given to another one. There is no state 'blocked'; it
-- stands here because SQLite cannot change a CHECK of a table that exists.
CREATE TABLE rota_job (
    id               INTEGER PRIMARY KEY AUTOINCREMENT,
    task             TEXT NOT NULL,
    queue            TEXT NOT NULL,
    priority         INTEGER NOT NULL,
    state            TEXT NOT NULL,
    attempt          INTEGER NOT NULL DEFAULT 0 CHECK (attempt >= 0),
    max_attempts     INTEGER NOT NULL CHECK (max_attempts >= 1),
    timeout          REAL,
    enqueued_at      REAL NOT NULL,
    scheduled_at     REAL,
    finished_at      REAL,
    keep_until       REAL,
    lease            INTEGER,
    session          INTEGER,
    cancel_requested INTEGER NOT NULL DEFAULT 0 CHECK (cancel_requested IN (0, 1)),
    args             TEXT NOT NULL,
    result           TEXT,
    errors           TEXT,
    unique_key       TEXT,
    iteration        INTEGER NOT NULL DEFAULT 0,    -- the rounds that ended with Again
    last_run         REAL,
    lane             INTEGER,
    -- Of a job that was cancelled before it started: whether it had its unique key only while it
    -- waited. It has it so again when it is retried by hand. Null for all others.
    while_waiting    INTEGER,
    headers          TEXT,   -- names and texts that travel with the job: a JSON object
    CONSTRAINT known_state CHECK (
        state IN ('scheduled', 'available', 'blocked', 'running', 'retryable',
                  'completed', 'discarded', 'cancelled')),
    CONSTRAINT waiting_has_a_time CHECK (
        (state IN ('scheduled', 'retryable')) = (scheduled_at IS NOT NULL)),
    CONSTRAINT running_has_a_lease CHECK ((state = 'running') = (lease IS NOT NULL)),
    CONSTRAINT running_has_a_session CHECK ((state = 'running') = (session IS NOT NULL)),
    CONSTRAINT only_running_is_asked_to_stop CHECK (cancel_requested = 0 OR state = 'running'),
    CONSTRAINT finished_has_a_time CHECK (
        (state IN ('completed', 'discarded', 'cancelled')) = (finished_at IS NOT NULL)),
    CONSTRAINT only_finished_is_pruned CHECK (keep_until IS NULL OR finished_at IS NOT NULL)
) STRICT;

-- Every index but the primary key is partial: a job is in few of them at any time, so a move through its
-- life touches little, and each of them answers one question of the hot path.

-- stage: what is due first.
CREATE INDEX rota_job_waiting ON rota_job (scheduled_at, queue, state)
    WHERE scheduled_at IS NOT NULL;

-- renew, rescue, close_session: what a worker holds.
CREATE INDEX rota_job_running ON rota_job (session, queue) WHERE session IS NOT NULL;

-- list_finished, retry_discarded, and the counts: what has ended how.
CREATE INDEX rota_job_finished ON rota_job (state, id, queue) WHERE finished_at IS NOT NULL;

-- prune: what is kept no longer.
CREATE INDEX rota_job_kept ON rota_job (keep_until) WHERE keep_until IS NOT NULL;

-- list_subject: the jobs of a key.
CREATE INDEX rota_job_subject ON rota_job (unique_key) WHERE unique_key IS NOT NULL;

-- claim: the jobs of one queue in the order in which they start, and the jobs of one lane.
-- `state` and `lane` are the same in every entry, but SQLite would read the rows to make sure of it; the
-- entries of one queue and priority are in the order of ids by themselves.
CREATE INDEX rota_job_available ON rota_job (state, lane, queue, priority)
    WHERE state = 'available' AND lane IS NULL;
CREATE INDEX rota_job_keyed ON rota_job (state, lane)
    WHERE state = 'available' AND lane IS NOT NULL;

-- claim: how many jobs of a lane run.
CREATE INDEX rota_job_held ON rota_job (lane, session)
    WHERE session IS NOT NULL AND lane IS NOT NULL;

-- How many jobs a queue has in a state, kept by every statement that changes it, in the same
-- transaction. `expires` is when they are out of sight: `keep_until` of finished jobs, else infinity
-- (9e999). 'appended', 'claimed' and 'removed' are running totals of what became and ceased to be
-- available; 'completed' and 'discarded' with the expiry -9e999 are running totals as well, of all that ever ended so.
-- Running jobs are few and are counted. A queue is known by its rows here, too.
CREATE TABLE rota_count (
    queue   TEXT NOT NULL,
    state   TEXT NOT NULL,
    expires REAL NOT NULL,
    jobs    INTEGER NOT NULL,
    PRIMARY KEY (queue, state, expires)
) STRICT, WITHOUT ROWID;


-- Unique keys -------------------------------------------------------------------------------------

-- Which job has which key: that of the enqueue that inserts the row. `until` is the end of its period, up
-- to which the key is kept though its job has ended. `job` is null for the moment until the job is stored.
CREATE TABLE rota_unique (
    key           TEXT NOT NULL,
    task          TEXT NOT NULL,
    job           INTEGER,
    until         REAL,
    first_at      REAL NOT NULL,
    while_waiting INTEGER NOT NULL CHECK (while_waiting IN (0, 1)),
    ended         INTEGER NOT NULL DEFAULT 0 CHECK (ended IN (0, 1)),
    PRIMARY KEY (key, task)
) STRICT, WITHOUT ROWID;

-- What has become of a job's key.
CREATE INDEX rota_unique_job ON rota_unique (job);

-- prune: what is held no longer.
CREATE INDEX rota_unique_until ON rota_unique (until) WHERE until IS NOT NULL;


-- Cron entries ------------------------------------------------------------------------------------

-- What is to be enqueued, when, and how far that has come: due times up to `since` have been dealt
-- with, `due` is the next one (null: there is none), `last` the newest that has made a job.
-- `parameter` is the one that gets the due time. `declaration` is what the code said last, null for an
-- entry that was added at run time. `seq` counts how often the entry has moved on. `options` is what the
-- jobs have besides the other columns, as a JSON object: whether the task says attempts and timeout,
-- its limit, its unique and its fair option, with the keys that come of the entry's args; null for a task
-- that has none of these.
CREATE TABLE rota_cron_entry (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    name         TEXT NOT NULL UNIQUE,
    expression   TEXT NOT NULL,
    timezone     TEXT NOT NULL,
    missed       TEXT NOT NULL CHECK (missed IN ('skip', 'latest', 'all')),
    jitter       REAL NOT NULL,
    task         TEXT NOT NULL,
    args         TEXT NOT NULL,
    parameter    TEXT,
    queue        TEXT NOT NULL,
    priority     INTEGER NOT NULL,
    max_attempts INTEGER NOT NULL,
    timeout      REAL,
    paused       INTEGER NOT NULL DEFAULT 0 CHECK (paused IN (0, 1)),
    declaration  TEXT,
    created_at   REAL NOT NULL,
    seq          INTEGER NOT NULL DEFAULT 0,
    since        REAL,
    due          REAL,
    last         REAL,
    options      TEXT
) STRICT;

-- Which entries (a JSON array of names) the code of a worker declares, one row for each session that
-- has any.
CREATE TABLE rota_cron_worker (
    session INTEGER PRIMARY KEY,
    entries TEXT NOT NULL
) STRICT;

-- Every entry, for people too: SELECT * FROM rota_cron. Entries that come from code and are in the code of
-- no worker that is alive are `undeclared`, and are not run.
CREATE VIEW rota_cron AS
SELECT entry.*, entry.declaration IS NOT NULL AS declared,
       entry.declaration IS NOT NULL AND NOT EXISTS (
           SELECT 1 FROM rota_cron_worker AS worker
           JOIN rota_session AS session ON session.id = worker.session
           JOIN json_each(worker.entries) AS declares
           WHERE session.ended_at IS NULL AND declares.value = entry.name) AS undeclared
FROM rota_cron_entry AS entry;


-- Progress and log lines --------------------------------------------------------------------------

-- What handlers tell of their runs: the newest progress of a job, and its newest log lines. `lease`
-- says which run told it, `number` which progress or which line of that run it was. A job without
-- notes has no row here. They go with their job; what a job leaves that vanished by itself (its
-- retention was 0) is swept up.
CREATE TABLE rota_note (
    job      INTEGER NOT NULL,
    line     INTEGER NOT NULL CHECK (line IN (0, 1)),
    lease    INTEGER NOT NULL,
    number   INTEGER NOT NULL,
    attempt  INTEGER NOT NULL,
    at       REAL NOT NULL,
    fraction REAL,
    level    TEXT,
    text     TEXT NOT NULL,
    PRIMARY KEY (job, line, lease, number),
    CHECK (CASE WHEN line THEN level IS NOT NULL ELSE fraction BETWEEN 0 AND 1 END)
) STRICT, WITHOUT ROWID;


-- Memory ------------------------------------------------------------------------------------------

-- What jobs remember across their runs (docs/guides/steps.md), in the order of `id`. `kind`:
--   step    the result of a step
--   sleep   when a sleep ends: `until`
--   wait    a job has gone to sleep for a signal, `ref`, at most `until`; `due` is for when it was scheduled then
--   answer  how a wait has ended: with the signal `ref`, or, where that is null, because the time was up
--   signal  a message: `ref` tells it from others
-- A repeated name has the number of its turn behind it: `charge#2`. It goes with its job; what a job leaves
-- that vanished by itself (its retention was 0) is swept up.
CREATE TABLE rota_memory (
    id    INTEGER PRIMARY KEY AUTOINCREMENT,
    job   INTEGER NOT NULL,
    at    REAL NOT NULL,
    until REAL,
    due   REAL,
    kind  TEXT NOT NULL CHECK (kind IN ('step', 'sleep', 'wait', 'answer', 'signal')),
    name  TEXT NOT NULL,
    ref   TEXT,
    value TEXT
) STRICT;
CREATE INDEX rota_memory_order ON rota_memory (job, id);
CREATE INDEX rota_memory_ref ON rota_memory (job, ref) WHERE ref IS NOT NULL;


-- Flows -------------------------------------------------------------------------------------------

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


-- History -----------------------------------------------------------------------------------------

-- What happened in each minute (since 1970), by queue, for seven days. The queue '' stands for all together, and its rows
-- say which minutes were recorded; a queue in which nothing happened and nothing waits has no row. The `total_` columns
-- are the running totals from which the next difference is taken. `span` is how many minutes that difference took to come
-- about: more than one after minutes in which no worker looked, 0 where nothing is known of before.
CREATE TABLE rota_history (
    queue           TEXT NOT NULL,
    minute          INTEGER NOT NULL,
    span            INTEGER NOT NULL,
    appended        INTEGER NOT NULL,
    claimed         INTEGER NOT NULL,
    completed       INTEGER NOT NULL,
    discarded       INTEGER NOT NULL,
    available       INTEGER NOT NULL,   -- at the end of the minute
    oldest          REAL,               -- seconds since the job that is next was enqueued
    total_appended  INTEGER NOT NULL,
    total_claimed   INTEGER NOT NULL,
    total_completed INTEGER NOT NULL,
    total_discarded INTEGER NOT NULL,
    PRIMARY KEY (queue, minute)
) STRICT, WITHOUT ROWID;
-- Audit -------------------------------------------------------------------------------------------

-- What people did on the dashboard. `what` says to what it was done, a JSON object; `changed` how many jobs, queues
-- or entries that has changed. An action on everything that matches is carried out by a `job`, which has come up to
-- `position`. The newest 10,000 rows stay: each new one removes what is older.
CREATE TABLE rota_audit (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    at       REAL NOT NULL,
    changed  INTEGER NOT NULL DEFAULT 0,
    job      INTEGER,
    who      TEXT NOT NULL,
    action   TEXT NOT NULL,
    what     TEXT NOT NULL,
    position TEXT
) STRICT;
