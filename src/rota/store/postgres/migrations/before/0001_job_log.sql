-- The job log: append-only rows, a cursor per lane, leases, timers, finished jobs.
-- docs/engine.md explains the design; nothing here is a function or a trigger.

CREATE SCHEMA rota;

CREATE TABLE rota.schema_version (
    version    integer PRIMARY KEY,
    applied_at timestamptz NOT NULL DEFAULT now()
);

-- Transaction ids mean something in one cluster only. After a dump and restore into another one
-- this row still names the old cluster, and the logs are anchored anew.
CREATE TABLE rota.origin (
    system_identifier bigint NOT NULL
);
INSERT INTO rota.origin SELECT system_identifier FROM pg_control_system();

CREATE TABLE rota.queue (
    name       text PRIMARY KEY,
    paused     boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL DEFAULT now()
);

-- One (queue, priority) pair with a log order and a cursor of its own. A claim locks this row and
-- never changes it, so it never makes a row version.
CREATE TABLE rota.lane (
    id       integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue    text NOT NULL REFERENCES rota.queue,
    priority smallint NOT NULL,
    UNIQUE (queue, priority)
);

CREATE SEQUENCE rota.job_id AS bigint;

-- Which segment of a ring new rows go to: last_value modulo the ring's size. A sequence, because
-- its value can be read without a row version and moved without one.
CREATE SEQUENCE rota.log_turn MINVALUE 0 START 0;
CREATE SEQUENCE rota.cursor_turn MINVALUE 0 START 0;
CREATE SEQUENCE rota.lease_turn MINVALUE 0 START 0;
CREATE SEQUENCE rota.tally_turn MINVALUE 0 START 0;
CREATE SEQUENCE rota.finished_turn MINVALUE 0 START 0;

-- The job log. Log order is (lane, xid, id): the transactions of a lane in the order of their
-- first write, and inside one the jobs as they were enqueued. A job that comes back (retry,
-- snooze, release, rescue) is appended again under the same id with the next `entry`.
CREATE TABLE rota.log (
    id           bigint NOT NULL,
    xid          xid8 NOT NULL DEFAULT pg_current_xact_id(),
    enqueued_at  timestamptz NOT NULL DEFAULT now(),
    lane         integer NOT NULL,
    entry        integer NOT NULL DEFAULT 0,
    timeout      real,
    segment      smallint NOT NULL,
    attempt      smallint NOT NULL DEFAULT 0,   -- attempts spent before this entry
    max_attempts smallint NOT NULL,
    task         text NOT NULL,
    args         json NOT NULL,
    errors       jsonb
) PARTITION BY LIST (segment);
CREATE TABLE rota.log_0 PARTITION OF rota.log FOR VALUES IN (0) WITH (autovacuum_enabled = false);
CREATE TABLE rota.log_1 PARTITION OF rota.log FOR VALUES IN (1) WITH (autovacuum_enabled = false);
CREATE TABLE rota.log_2 PARTITION OF rota.log FOR VALUES IN (2) WITH (autovacuum_enabled = false);
CREATE TABLE rota.log_3 PARTITION OF rota.log FOR VALUES IN (3) WITH (autovacuum_enabled = false);
CREATE INDEX log_order ON rota.log (lane, xid, id);
CREATE INDEX log_job ON rota.log (id, entry);

-- How far each lane has been handed out. Append-only: the entry with the highest seq counts. Every
-- row of the lane at or before (xid, id) has been handed out, except rows of the transactions in
-- hole_xids, which were still running when the cursor passed them; hole_ids holds the last id
-- already taken from each. `taken` counts all jobs that the lane has ever handed out.
CREATE TABLE rota.cursor (
    seq       bigint NOT NULL,
    xid       xid8 NOT NULL,
    id        bigint NOT NULL,
    taken     bigint NOT NULL,
    lane      integer NOT NULL,
    slot      smallint NOT NULL,
    hole_xids xid8[] NOT NULL,
    hole_ids  bigint[] NOT NULL
) PARTITION BY LIST (slot);
CREATE TABLE rota.cursor_0 PARTITION OF rota.cursor FOR VALUES IN (0) WITH (autovacuum_enabled = false);
CREATE TABLE rota.cursor_1 PARTITION OF rota.cursor FOR VALUES IN (1) WITH (autovacuum_enabled = false);
CREATE INDEX cursor_order ON rota.cursor (lane, seq);

-- One run of one worker process. Never updated: the lock on this row is the fence between a
-- worker and those who declare it dead.
CREATE TABLE rota.session (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    host       text NOT NULL,
    pid        integer NOT NULL,
    queues     text[] NOT NULL,
    timeout    interval NOT NULL,
    started_at timestamptz NOT NULL DEFAULT now()
);

-- Signs of life, append-only: the newest one of a session counts.
CREATE TABLE rota.heartbeat (
    session bigint NOT NULL,
    at      timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX heartbeat_order ON rota.heartbeat (session, at);

-- What one claim handed out and has not been settled yet. Settling deletes the row: the one dead row
-- of a claim. Two tables that turn, so that dead ones go by TRUNCATE even under a held horizon. There is
-- no index by session: the planner would settle by it, and walk the session's dead leases.
CREATE SEQUENCE rota.lease_id AS bigint;
CREATE TABLE rota.lease (
    id         bigint NOT NULL DEFAULT nextval('rota.lease_id'),
    session    bigint NOT NULL REFERENCES rota.session,
    claimed_at timestamptz NOT NULL DEFAULT now(),
    lane       integer NOT NULL,
    slot       smallint NOT NULL,
    jobs       bigint[] NOT NULL
) PARTITION BY LIST (slot);
CREATE TABLE rota.lease_0 PARTITION OF rota.lease FOR VALUES IN (0) WITH (autovacuum_enabled = false);
CREATE TABLE rota.lease_1 PARTITION OF rota.lease FOR VALUES IN (1) WITH (autovacuum_enabled = false);
CREATE INDEX lease_order ON rota.lease (id);

-- Running jobs that somebody wants cancelled.
CREATE TABLE rota.cancel_request (
    job          bigint PRIMARY KEY,
    requested_at timestamptz NOT NULL DEFAULT now()
);

-- Jobs whose time has not come.
CREATE TABLE rota.timer (
    id           bigint PRIMARY KEY,
    xid          xid8 NOT NULL DEFAULT pg_current_xact_id(),
    run_at       timestamptz NOT NULL,
    enqueued_at  timestamptz NOT NULL DEFAULT now(),
    lane         integer NOT NULL,
    entry        integer NOT NULL DEFAULT 0,    -- the entry it will have in the log
    timeout      real,
    attempt      smallint NOT NULL DEFAULT 0,
    max_attempts smallint NOT NULL,
    state        text NOT NULL DEFAULT 'scheduled' CHECK (state IN ('scheduled', 'retryable')),
    task         text NOT NULL,
    args         json NOT NULL,
    errors       jsonb
);
CREATE INDEX timer_due ON rota.timer (run_at, id);
CREATE INDEX timer_xid ON rota.timer (xid);

-- How far timers have been staged, and in which snapshot; the highest seq counts.
CREATE TABLE rota.timer_mark (
    seq      bigint PRIMARY KEY,
    run_at   timestamptz NOT NULL,
    id       bigint NOT NULL,
    snapshot pg_snapshot NOT NULL
);
INSERT INTO rota.timer_mark VALUES (0, '-infinity', 0, pg_current_snapshot());

-- Finished jobs: a ring for those with a retention, and one table for the discarded ones, which
-- stay until somebody deletes or retries them.
CREATE TABLE rota.finished (
    id           bigint NOT NULL,
    enqueued_at  timestamptz NOT NULL,
    finished_at  timestamptz NOT NULL DEFAULT now(),
    keep_until   timestamptz NOT NULL,
    timeout      real,
    segment      smallint NOT NULL,
    priority     smallint NOT NULL,
    entry        integer NOT NULL,
    attempt      smallint NOT NULL,
    max_attempts smallint NOT NULL,
    state        text NOT NULL CHECK (state IN ('completed', 'discarded', 'cancelled')),
    queue        text NOT NULL,
    task         text NOT NULL,
    args         json NOT NULL,
    result       json,
    errors       jsonb,
    CHECK ((state = 'discarded') = (segment = -1))
) PARTITION BY LIST (segment);
CREATE TABLE rota.finished_0 PARTITION OF rota.finished FOR VALUES IN (0);
CREATE TABLE rota.finished_1 PARTITION OF rota.finished FOR VALUES IN (1);
CREATE TABLE rota.finished_2 PARTITION OF rota.finished FOR VALUES IN (2);
CREATE TABLE rota.finished_3 PARTITION OF rota.finished FOR VALUES IN (3);
CREATE TABLE rota.finished_4 PARTITION OF rota.finished FOR VALUES IN (4);
CREATE TABLE rota.finished_5 PARTITION OF rota.finished FOR VALUES IN (5);
CREATE TABLE rota.finished_discarded PARTITION OF rota.finished FOR VALUES IN (-1);
CREATE INDEX finished_job ON rota.finished (id);

-- Counting. What changes the number of waiting or finished jobs says so in one row per lane, state
-- and expiry; nobody ever counts the jobs themselves. `expires` is when the jobs are out of sight:
-- `keep_until` of finished ones, else infinity. Jobs that are taken out of the log by hand are 'removed',
-- and 'appended' by the transaction `appended_by` whose rows they were: since these are gone, that row
-- stands for them, but only as long as no mark has counted them.
CREATE TABLE rota.tally (
    xid         xid8 NOT NULL DEFAULT pg_current_xact_id(),
    expires     timestamptz NOT NULL DEFAULT 'infinity',
    jobs        bigint NOT NULL,
    appended_by xid8,
    lane        integer NOT NULL,
    slot        smallint NOT NULL,
    state       text NOT NULL
) PARTITION BY LIST (slot);
CREATE TABLE rota.tally_0 PARTITION OF rota.tally FOR VALUES IN (0) WITH (autovacuum_enabled = false);
CREATE TABLE rota.tally_1 PARTITION OF rota.tally FOR VALUES IN (1) WITH (autovacuum_enabled = false);
CREATE INDEX tally_xid ON rota.tally (xid);

-- All totals as they were in one snapshot; append-only, and the highest seq counts. An element of
-- the arrays is a lane, a state ('appended' for all entries that its log ever got, 'removed' for those
-- taken out by hand), an expiry and a number of jobs. `claimed` is the sum of all lanes' `taken`.
CREATE TABLE rota.tally_mark (
    seq      bigint PRIMARY KEY,
    at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    snapshot pg_snapshot NOT NULL,
    claimed  bigint NOT NULL,
    lanes    integer[] NOT NULL,
    states   text[] NOT NULL,
    expires  timestamptz[] NOT NULL,
    jobs     bigint[] NOT NULL
);
INSERT INTO rota.tally_mark VALUES (0, DEFAULT, pg_current_snapshot(), 0, '{}', '{}', '{}', '{}');

-- The totals of this moment: those of the newest mark, and what came since. What came since is what
-- transactions wrote that were running at the mark or began later. The log itself says what was
-- appended, so that a producer writes nothing more: copies of leased rows keep their xid and do not
-- count again. `recent` is how many rows were looked at, zero where the mark says it all.
-- An array of xids would not do for the log: on an empty table a plan may filter by it.
CREATE VIEW rota.counter AS
WITH mark AS MATERIALIZED (
    SELECT newest.*, pg_snapshot_xmax(newest.snapshot) AS later,
           ARRAY(SELECT pg_snapshot_xip(newest.snapshot)) AS running
    FROM rota.tally_mark AS newest ORDER BY newest.seq DESC LIMIT 1
), change AS (
    SELECT lane.id AS lane, 'appended' AS state, 'infinity'::timestamptz AS expires, came.jobs,
           came.jobs AS recent
    FROM mark CROSS JOIN rota.lane
    CROSS JOIN LATERAL (
        SELECT count(*) AS jobs FROM (
            SELECT FROM rota.log AS job WHERE job.lane = lane.id AND job.xid >= mark.later
            UNION ALL
            SELECT FROM unnest(mark.running) AS late (xid)
            CROSS JOIN LATERAL (
                SELECT FROM rota.log AS job WHERE job.lane = lane.id AND job.xid = late.xid
                ORDER BY job.lane, job.xid, job.id
            ) AS job
        ) AS job
    ) AS came
    WHERE came.jobs > 0
    UNION ALL
    SELECT tally.lane, tally.state, tally.expires,
           CASE WHEN pg_visible_in_snapshot(tally.appended_by, mark.snapshot)
                THEN 0 ELSE tally.jobs END, 1
    FROM mark
    CROSS JOIN LATERAL (
        SELECT tally.* FROM rota.tally WHERE tally.xid >= mark.later
        UNION ALL
        SELECT tally.* FROM rota.tally WHERE tally.xid = ANY (mark.running)
    ) AS tally
)
SELECT part.lane, part.state, part.expires, sum(part.jobs)::bigint AS jobs,
       sum(part.recent)::bigint AS recent
FROM (
    SELECT total.lane, total.state, total.expires, total.jobs, 0 AS recent
    FROM mark
    CROSS JOIN LATERAL unnest(mark.lanes, mark.states, mark.expires, mark.jobs)
        AS total (lane, state, expires, jobs)
    UNION ALL
    SELECT * FROM change
) AS part
GROUP BY part.lane, part.state, part.expires;

-- Every job with its state, for people: SELECT * FROM rota.job WHERE id = 42. The columns of the
-- four branches are those of rota/job.py's JobRecord.
CREATE VIEW rota.job AS
SELECT timer.id, timer.task, timer.args, lane.queue, lane.priority, timer.state,
       timer.attempt, timer.max_attempts, timer.timeout, timer.enqueued_at,
       timer.run_at AS scheduled_at, NULL::timestamptz AS finished_at, NULL::json AS result,
       timer.errors, NULL::text AS worker
FROM rota.timer
JOIN rota.lane ON lane.id = timer.lane
UNION ALL
SELECT job.id, job.task, job.args, lane.queue, lane.priority, 'available',
       job.attempt, job.max_attempts, job.timeout, job.enqueued_at,
       NULL, NULL, NULL, job.errors, NULL
FROM rota.log AS job
JOIN rota.lane ON lane.id = job.lane
CROSS JOIN LATERAL (
    SELECT place.xid, place.id, place.hole_xids, place.hole_ids
    FROM rota.cursor AS place WHERE place.lane = job.lane ORDER BY place.lane DESC, place.seq DESC LIMIT 1
) AS place
WHERE (job.xid, job.id) > (place.xid, place.id)
   OR job.id > place.hole_ids[array_position(place.hole_xids, job.xid)]
UNION ALL
SELECT held.id, job.task, job.args, lane.queue, lane.priority, 'running',
       (job.attempt + 1)::smallint, job.max_attempts, job.timeout, job.enqueued_at,
       NULL, NULL, NULL, job.errors, session.host || ':' || session.pid
FROM rota.lease
CROSS JOIN LATERAL unnest(lease.jobs) AS held (id)
CROSS JOIN LATERAL (
    SELECT entry.* FROM rota.log AS entry WHERE entry.id = held.id
    ORDER BY entry.id DESC, entry.entry DESC LIMIT 1
) AS job
JOIN rota.lane ON lane.id = job.lane
JOIN rota.session ON session.id = lease.session
UNION ALL
SELECT id, task, args, queue, priority, state, attempt, max_attempts, timeout, enqueued_at,
       NULL, finished_at, result, errors, NULL
FROM rota.finished
WHERE keep_until > now();
