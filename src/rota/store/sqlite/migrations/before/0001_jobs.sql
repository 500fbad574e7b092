-- Rota's tables: one row per job, and what is known of its queues and its workers.
--
-- Moments are seconds since 1970 in UTC, as SQLite's own clock tells them. Every index but the
-- primary key is partial: a job is in at most two of them at any time, so a move through its life
-- touches little, and each of them answers one question of the hot path.

CREATE TABLE rota_schema (
    version    INTEGER PRIMARY KEY,
    applied_at REAL NOT NULL
) STRICT;

CREATE TABLE rota_queue (
    name   TEXT PRIMARY KEY,
    paused INTEGER NOT NULL DEFAULT 0 CHECK (paused IN (0, 1))
) STRICT, WITHOUT ROWID;

-- How many jobs a queue has in a state, kept by every statement that changes it, in the same
-- transaction. `expires` is when they are out of sight: `keep_until` of finished jobs, else infinity
-- (9e999). 'appended', 'claimed' and 'removed' are running totals of what became and ceased to be
-- available. Running jobs are few and are counted. A queue is known by its rows here, too.
CREATE TABLE rota_count (
    queue   TEXT NOT NULL,
    state   TEXT NOT NULL,
    expires REAL NOT NULL,
    jobs    INTEGER NOT NULL,
    PRIMARY KEY (queue, state, expires)
) STRICT, WITHOUT ROWID;

CREATE TABLE rota_session (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    host       TEXT NOT NULL,
    pid        INTEGER NOT NULL,
    queues     TEXT NOT NULL,
    timeout    REAL NOT NULL CHECK (timeout >= 0),
    opened_at  REAL NOT NULL,
    renewed_at REAL NOT NULL,
    silent_at  REAL,
    ended_at   REAL
) STRICT;

CREATE INDEX rota_session_alive ON rota_session (id) WHERE ended_at IS NULL;

-- The last lease that was handed out: one row.
CREATE TABLE rota_lease (
    one  INTEGER PRIMARY KEY CHECK (one = 1),
    last INTEGER NOT NULL
) STRICT;

INSERT INTO rota_lease (one, last) VALUES (1, 0);

-- AUTOINCREMENT: the id of a deleted job is never given to another one.
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

-- claim: the jobs of one queue in the order in which they start.
-- `state` is the same in every entry, but SQLite would read the rows to make sure of it; the entries
-- of one queue and priority are in the order of ids by themselves.
CREATE INDEX rota_job_available ON rota_job (state, queue, priority) WHERE state = 'available';

-- stage: what is due first.
CREATE INDEX rota_job_waiting ON rota_job (scheduled_at, queue, state)
    WHERE scheduled_at IS NOT NULL;

-- renew, rescue, close_session: what a worker holds.
CREATE INDEX rota_job_running ON rota_job (session, queue) WHERE session IS NOT NULL;

-- list_finished, retry_discarded, and the counts: what has ended how.
CREATE INDEX rota_job_finished ON rota_job (state, id, queue) WHERE finished_at IS NOT NULL;

-- prune: what is kept no longer.
CREATE INDEX rota_job_kept ON rota_job (keep_until) WHERE keep_until IS NOT NULL;
