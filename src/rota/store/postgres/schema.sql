-- Rota's tables in PostgreSQL as they are now.
--
-- A new database is made by this file in one step. A database of an older version comes to the same
-- tables by migrations/, step by step. A change of the tables is written twice, as a new migration and
-- in this file; `python -m tests.store.schema` shows where the two differ, and a test fails if they do.
-- This file is written by hand: a dump would have no comments, and its views would be hard to read.
--
-- docs/how/engine.md explains the design. In a table the wide columns come first, so that rows have no gaps;
-- columns that a migration added stand at the end, as in the databases that were migrated.

CREATE SCHEMA rota;

-- The versions of these tables that were made here, and when; the largest counts.
CREATE TABLE rota.schema_version (
    version    integer PRIMARY KEY,
    applied_at timestamptz NOT NULL DEFAULT now()
);

-- The oldest version whose code works with these tables. A migration that takes away what code of this version
-- still uses raises it.
CREATE VIEW rota.oldest_code AS SELECT 17 AS version;

-- Transaction ids mean something in one cluster only. After a dump and a restore into another cluster
-- this row still names the old one, and the log is anchored anew. (A clone has the same name: there the
-- ids tell, see rota.restored.)
CREATE TABLE rota.origin (
    system_identifier bigint NOT NULL
);
INSERT INTO rota.origin SELECT system_identifier FROM pg_control_system();


-- Queues, limits and lanes ----------------------------------------------------------------------

-- Every queue that was used, and whether it is paused.
CREATE TABLE rota.queue (
    name       text PRIMARY KEY,
    paused     boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL DEFAULT now()
);

-- What is set for single queues (`rota queues set`): one row for each queue that ever had a setting,
-- null where nothing is set. It changes rarely, so its few dead rows do not matter. A producer reads one
-- row when it looks up its lane, a worker reads all of them with each heartbeat. Durations are seconds;
-- `discarded` may be infinity.
CREATE TABLE rota.queue_setting (
    queue        text PRIMARY KEY,
    completed    float8 CHECK (completed >= 0 AND completed < 'infinity'),
    cancelled    float8 CHECK (cancelled >= 0 AND cancelled < 'infinity'),
    discarded    float8 CHECK (discarded >= 0 AND discarded <> 'nan'),
    max_attempts smallint CHECK (max_attempts >= 1),
    timeout      real CHECK (timeout > 0 AND timeout < 'infinity'),
    concurrency  integer CHECK (concurrency >= 1)
);

-- What limits the jobs of a key: so many at once, so many starts in so many seconds. The numbers come
-- from the code that enqueues, and change when they change there. No limit has the id 0.
CREATE TABLE rota.limit_key (
    id           integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key          text NOT NULL UNIQUE,
    running      integer,
    rate_count   integer,
    rate_seconds real
);

-- A lane is one (queue, priority) pair with a log order and a cursor of its own: the plain lane. Jobs with
-- a limit or a fair share lie in further lanes of the pair, one for each of their keys (`of_key`). So do jobs
-- of a `task` that a worker did not know which had claimed them; see settle/pass_on.sql.
-- A claim locks the row of a plain lane and never changes it, so it makes no row version. Claims of the
-- lanes of keys take turns instead, and lock no row.
CREATE TABLE rota.lane (
    id       integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue    text NOT NULL REFERENCES rota.queue,
    priority smallint NOT NULL,
    keyed    boolean NOT NULL DEFAULT false,    -- it ever got a job with a unique key
    limit_id integer NOT NULL DEFAULT 0,
    fair     text NOT NULL DEFAULT '',
    of_key   boolean GENERATED ALWAYS AS (limit_id <> 0 OR fair <> '') STORED,
    -- The transaction that made the lane. A producer must not go on with a lane that its own transaction
    -- has made (rota.enqueue() does so): the transaction may be rolled back.
    made_by  xid8 NOT NULL DEFAULT pg_current_xact_id(),
    task     text
);
CREATE UNIQUE INDEX lane_key ON rota.lane (queue, priority, limit_id, fair);
CREATE UNIQUE INDEX lane_plain ON rota.lane (queue, priority) WHERE NOT of_key;
CREATE INDEX lane_keyed ON rota.lane (queue, priority, id) WHERE of_key;
CREATE INDEX lane_task ON rota.lane (id) WHERE task IS NOT NULL;


-- The job log -----------------------------------------------------------------------------------

CREATE SEQUENCE rota.job_id AS bigint;

-- The tables below that are partitioned by `segment` or `slot` are rings. New rows go to one of a ring's
-- tables, which is emptied by TRUNCATE when nothing in it counts any more: that gives the space back even
-- while an old snapshot is held. Which table that is says a sequence: its last_value modulo the number
-- of tables. A sequence is read without a row version and moved without one.
CREATE SEQUENCE rota.log_turn MINVALUE 0 START 0;
-- Another one has the second, since 1970, in which the current table became it.
CREATE SEQUENCE rota.log_begun MINVALUE 0 START 0;
SELECT setval('rota.log_begun', extract(epoch FROM now())::int8);

-- The log order is (lane, xid, id): the transactions of a lane in the order of their first write, and
-- inside one the jobs as they were enqueued. A job that comes back (retry, snooze, release, rescue) is
-- appended again under the same id with the next `entry`. Null columns take no space.
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
    errors       jsonb,
    unique_key   text,
    iteration    integer,                       -- the rounds that ended with Again; null is none
    last_run     timestamptz,
    headers      json                           -- names and texts that travel with the job
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
CREATE SEQUENCE rota.cursor_turn MINVALUE 0 START 0;
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


-- Workers and what they hold --------------------------------------------------------------------

-- The timeline of this server, which a failover changes, and so does a restore to an earlier moment. Null where
-- the tables came from another cluster and no worker has anchored them yet: no session claims before that. Not on
-- a standby.
CREATE VIEW rota.here AS
SELECT CASE WHEN origin.system_identifier = here.system_identifier
            THEN ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer END AS timeline
FROM rota.origin, pg_control_system() AS here;

-- The timeline on which sessions were opened last; 0: not known.
CREATE SEQUENCE rota.timeline AS integer MINVALUE 0 START 0;

-- One run of one worker process. Never updated: the lock on this row is the fence between a worker and
-- another one that declares it dead.
CREATE TABLE rota.session (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    host       text NOT NULL,
    pid        integer NOT NULL,
    queues     text[] NOT NULL,
    timeout    interval NOT NULL,
    started_at timestamptz NOT NULL DEFAULT now(),
    timeline   integer,
    tasks      text[]  -- that it knows; null: it does not say
);

-- Signs of life, append-only: the newest one of a session counts.
CREATE TABLE rota.heartbeat (
    session bigint NOT NULL,
    at      timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX heartbeat_order ON rota.heartbeat (session, at);

-- Up to which second signs of life, unique keys past their period, and discarded jobs past their retention have
-- been removed: housekeeping goes on there, and passes the dead rows before it.
CREATE SEQUENCE rota.heartbeat_trimmed MINVALUE 0 START 0;
CREATE SEQUENCE rota.key_trimmed MINVALUE 0 START 0;
CREATE SEQUENCE rota.discarded_pruned MINVALUE 0 START 0;

-- The suspects that a session began last; see rota/model/suspects.py.
CREATE TABLE rota.lot (
    session bigint PRIMARY KEY REFERENCES rota.session ON DELETE CASCADE,
    jobs    bigint[] NOT NULL
);

-- What one claim handed out and has not been settled yet. Settling deletes the row: the one dead row of
-- a claim. There is no index by session: the planner would settle by it, and walk the session's dead
-- leases. `limits` has the limit of each of the jobs, 0 for none; null where no job has one. A place
-- of a limit is free again when its job leaves its lease, in whatever way.
CREATE SEQUENCE rota.lease_id AS bigint;
CREATE SEQUENCE rota.lease_turn MINVALUE 0 START 0;
CREATE TABLE rota.lease (
    id         bigint NOT NULL DEFAULT nextval('rota.lease_id'),
    session    bigint NOT NULL REFERENCES rota.session,
    claimed_at timestamptz NOT NULL DEFAULT now(),
    lane       integer NOT NULL,
    slot       smallint NOT NULL,
    jobs       bigint[] NOT NULL,
    limits     integer[]
) PARTITION BY LIST (slot);
CREATE TABLE rota.lease_0 PARTITION OF rota.lease FOR VALUES IN (0) WITH (autovacuum_enabled = false);
CREATE TABLE rota.lease_1 PARTITION OF rota.lease FOR VALUES IN (1) WITH (autovacuum_enabled = false);
CREATE INDEX lease_order ON rota.lease (id);

-- Running jobs that are to be cancelled.
CREATE TABLE rota.cancel_request (
    job          bigint PRIMARY KEY,
    requested_at timestamptz NOT NULL DEFAULT now()
);

-- How many jobs of a limit with a rate started when. Append-only: what lies in the window of a limit is
-- copied before the table is truncated.
CREATE SEQUENCE rota.limit_turn MINVALUE 0 START 0;
CREATE TABLE rota.limit_start (
    at       timestamptz NOT NULL,
    limit_id integer NOT NULL,
    jobs     integer NOT NULL,
    slot     smallint NOT NULL
) PARTITION BY LIST (slot);
CREATE TABLE rota.limit_start_0 PARTITION OF rota.limit_start FOR VALUES IN (0)
    WITH (autovacuum_enabled = false);
CREATE TABLE rota.limit_start_1 PARTITION OF rota.limit_start FOR VALUES IN (1)
    WITH (autovacuum_enabled = false);
CREATE INDEX limit_start_order ON rota.limit_start (limit_id, at);


-- Jobs whose time has not come ------------------------------------------------------------------

-- A void entry of a job with a unique key and the entry that counts may both wait here. 'available' is a
-- job of the log that a claim has put aside for a moment, because a producer was about to replace it: it
-- counts as available.
CREATE TABLE rota.timer (
    id           bigint NOT NULL,
    xid          xid8 NOT NULL DEFAULT pg_current_xact_id(),
    run_at       timestamptz NOT NULL,
    enqueued_at  timestamptz NOT NULL DEFAULT now(),
    lane         integer NOT NULL,
    entry        integer NOT NULL DEFAULT 0,    -- the entry it will have in the log
    timeout      real,
    attempt      smallint NOT NULL DEFAULT 0,
    max_attempts smallint NOT NULL,
    state        text NOT NULL DEFAULT 'scheduled' CHECK (
        state IN ('scheduled', 'retryable', 'available')),
    task         text NOT NULL,
    args         json NOT NULL,
    errors       jsonb,
    unique_key   text,
    iteration    integer,
    last_run     timestamptz,
    headers      json,
    PRIMARY KEY (id, entry)
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


-- Finished jobs ---------------------------------------------------------------------------------

-- A ring by age for completed and cancelled jobs, and one table for the discarded ones, which stay until
-- their retention is over, if they have one, or until they are deleted or retried by hand.
CREATE SEQUENCE rota.finished_turn MINVALUE 0 START 0;
CREATE SEQUENCE rota.finished_begun MINVALUE 0 START 0;
SELECT setval('rota.finished_begun', extract(epoch FROM now())::int8);
-- How far the jobs that are kept longer than the others have been moved out of a segment that was left: its
-- number * 2^32 + the next block.
CREATE SEQUENCE rota.finished_moved MINVALUE 0 START 0;
CREATE TABLE rota.finished (
    id            bigint NOT NULL,
    enqueued_at   timestamptz NOT NULL,
    finished_at   timestamptz NOT NULL DEFAULT now(),
    keep_until    timestamptz NOT NULL,
    timeout       real,
    segment       smallint NOT NULL,
    priority      smallint NOT NULL,
    entry         integer NOT NULL,
    attempt       smallint NOT NULL,
    max_attempts  smallint NOT NULL,
    state         text NOT NULL CHECK (state IN ('completed', 'discarded', 'cancelled')),
    queue         text NOT NULL,
    task          text NOT NULL,
    args          json NOT NULL,
    result        json,
    errors        jsonb,
    unique_key    text,
    iteration     integer,
    last_run      timestamptz,
    lane          integer,  -- the lane of a key that it lay in: a retry by hand puts it there again
    -- Of a job that was cancelled before it started: whether it had its unique key only while it
    -- waited. It has it so again when it is retried by hand. Null for all others.
    while_waiting boolean,
    headers       json,
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

-- prune_discarded.sql: the discarded jobs whose retention is over. Those that stay for ever are not in it.
CREATE INDEX finished_discarded_kept ON rota.finished_discarded (keep_until)
    WHERE keep_until < 'infinity';


-- Unique keys -----------------------------------------------------------------------------------

-- Which job has which key. An entry of a job in the log or the timer that has a `unique_key` counts only
-- while this row names its job and its `entry`: else it is void, and is passed over. So a job that waits
-- is replaced by appending a new entry and counting `entry` up here; the old one stays where it is.
--
-- `state` and `lane` say where the entry that counts is, so that a replacement can keep the counts
-- without looking for it: 'ended' holds a key until its period is over. Updated at every claim, staging
-- and settlement of a job with a key, always HOT: none of the indexed columns ever changes, and a page has room
-- for a second version of all its rows. Under a held snapshot the dead versions of a key stay, as many as it has
-- had turns.
CREATE TABLE rota.unique_key (
    job           bigint NOT NULL,
    xid           xid8 NOT NULL DEFAULT pg_current_xact_id(),   -- that enqueued or replaced it last
    until         timestamptz,                      -- the end of its period, if it has one
    first_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_run      timestamptz,
    lane          integer NOT NULL,
    entry         integer NOT NULL,
    iteration     integer,
    while_waiting boolean NOT NULL,                 -- the key is free as soon as the job starts
    state         text NOT NULL CHECK (
        state IN ('scheduled', 'available', 'retryable', 'running', 'ended')),
    task          text NOT NULL,
    key           text COLLATE "C" NOT NULL,
    PRIMARY KEY (key, task)
) WITH (fillfactor = 45);
CREATE INDEX unique_key_until ON rota.unique_key (until) WHERE until IS NOT NULL;


-- Cron entries ----------------------------------------------------------------------------------

-- What is to be enqueued, and when. Written by hand and when workers start, hence rarely: a worker that
-- makes the jobs of an entry locks its row and never changes it, so a due time makes no row version.
-- `parameter` is the one that gets the due time. `declaration` is what the code said last, null for an
-- entry that was added at run time. `options` is what the jobs have besides the other columns: whether
-- the task says attempts and timeout, its limit, its unique and its fair option, with the keys that come
-- of the entry's args; null for a task that has none of these.
CREATE TABLE rota.cron_entry (
    id           integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    created_at   timestamptz NOT NULL DEFAULT now(),
    jitter       double precision NOT NULL,
    timeout      real,
    priority     smallint NOT NULL,
    max_attempts smallint NOT NULL,
    paused       boolean NOT NULL DEFAULT false,
    name         text NOT NULL UNIQUE,
    expression   text NOT NULL,
    timezone     text NOT NULL,
    missed       text NOT NULL CHECK (missed IN ('skip', 'latest', 'all')),
    task         text NOT NULL,
    queue        text NOT NULL,
    parameter    text,
    args         json NOT NULL,
    declaration  text,
    options      json
);

-- How far each entry has come; append-only, and the highest seq counts. Its due times up to `since` have
-- been dealt with, `due` is the next one (null: there is none), `last` the newest that has made a job.
-- The key is also the last line of defence: two workers that deal with the same due time would both
-- append the same seq. Each new mark deletes the tenth before it. Dead rows are never walked: the
-- newest mark is read from the index's right end.
CREATE TABLE rota.cron_mark (
    entry integer NOT NULL REFERENCES rota.cron_entry ON DELETE CASCADE,
    seq   bigint NOT NULL,
    since timestamptz NOT NULL,
    due   timestamptz,
    last  timestamptz,
    PRIMARY KEY (entry, seq)
);

-- Which entries the code of a worker declares, one row for each session that has any.
CREATE TABLE rota.cron_worker (
    session bigint PRIMARY KEY,
    entries text[] NOT NULL
);


-- Progress and log lines ------------------------------------------------------------------------

-- What handlers tell of their runs. Rows are appended; the newest progress of a job counts, and its
-- newest lines. `lease` says which run told it, so that a run which lost its lease never counts before its
-- successor; `number` is which progress, or which line, of that run it was. Nothing is written for a job
-- whose handler tells nothing. Here are the notes of jobs that have not finished, and for a while those of
-- jobs that have.
CREATE SEQUENCE rota.note_turn MINVALUE 0 START 0;
CREATE TABLE rota.note (
    job      bigint NOT NULL,
    lease    bigint NOT NULL,
    number   bigint NOT NULL,
    at       timestamptz NOT NULL,
    fraction double precision,             -- of progress
    attempt  smallint NOT NULL,
    slot     smallint NOT NULL,
    line     boolean NOT NULL,
    level    text,                         -- of a line
    text     text NOT NULL,
    CHECK (CASE WHEN line THEN level IS NOT NULL ELSE fraction BETWEEN 0 AND 1 END)
) PARTITION BY LIST (slot);
CREATE TABLE rota.note_0 PARTITION OF rota.note FOR VALUES IN (0) WITH (autovacuum_enabled = false);
CREATE TABLE rota.note_1 PARTITION OF rota.note FOR VALUES IN (1) WITH (autovacuum_enabled = false);
CREATE INDEX note_order ON rota.note (job, line, lease, number);

-- The notes of finished jobs, in segments that belong to those of rota.finished: a segment of both is
-- truncated when the retention of all its jobs is over.
CREATE TABLE rota.finished_note (
    job      bigint NOT NULL,
    lease    bigint NOT NULL,
    number   bigint NOT NULL,
    at       timestamptz NOT NULL,
    fraction double precision,
    attempt  smallint NOT NULL,
    segment  smallint NOT NULL,
    line     boolean NOT NULL,
    level    text,
    text     text NOT NULL
) PARTITION BY LIST (segment);
CREATE TABLE rota.finished_note_0 PARTITION OF rota.finished_note FOR VALUES IN (0);
CREATE TABLE rota.finished_note_1 PARTITION OF rota.finished_note FOR VALUES IN (1);
CREATE TABLE rota.finished_note_2 PARTITION OF rota.finished_note FOR VALUES IN (2);
CREATE TABLE rota.finished_note_3 PARTITION OF rota.finished_note FOR VALUES IN (3);
CREATE TABLE rota.finished_note_4 PARTITION OF rota.finished_note FOR VALUES IN (4);
CREATE TABLE rota.finished_note_5 PARTITION OF rota.finished_note FOR VALUES IN (5);
CREATE TABLE rota.finished_note_discarded PARTITION OF rota.finished_note FOR VALUES IN (-1);
CREATE INDEX finished_note_order ON rota.finished_note (job, line, lease, number);


-- Memory ----------------------------------------------------------------------------------------

-- What jobs remember across their runs (docs/how/engine.md, "Memory"). Rows are appended, by whoever holds the job's lease;
-- signals by anybody. `kind`:
--   step    the result of a step
--   sleep   when a sleep ends: `until`
--   wait    a job has gone to sleep for a signal, `ref`, at most `until`; `entry` is that of its timer
--   answer  how a wait has ended: with the signal `ref`, or, where that is null, because the time was up
--   signal  a message: `ref` tells it from others
--   round   the job's round has ended; nothing before this row counts
-- A repeated name has the number of its turn behind it: `charge#2`. The order is that of `id`; rows with the same one are copies. Here
-- is the memory of jobs that have not finished, and for a while that of jobs that have.
CREATE SEQUENCE rota.memory_id AS bigint;
CREATE SEQUENCE rota.memory_turn MINVALUE 0 START 0;
-- The bytes that were copied when the ring turned last: it turns again when there is twice as much.
CREATE SEQUENCE rota.memory_kept MINVALUE 0 START 0;
CREATE TABLE rota.memory (
    id    bigint NOT NULL DEFAULT nextval('rota.memory_id'),
    job   bigint NOT NULL,
    at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    until timestamptz,
    xid   xid8,                -- of signals and waits, which have to find each other
    entry integer,
    slot  smallint NOT NULL,
    kind  text NOT NULL CHECK (kind IN ('step', 'sleep', 'wait', 'answer', 'signal', 'round')),
    name  text NOT NULL,
    ref   text,
    value json
) PARTITION BY LIST (slot);
CREATE TABLE rota.memory_0 PARTITION OF rota.memory FOR VALUES IN (0) WITH (autovacuum_enabled = false);
CREATE TABLE rota.memory_1 PARTITION OF rota.memory FOR VALUES IN (1) WITH (autovacuum_enabled = false);
CREATE INDEX memory_order ON rota.memory (job, id);
CREATE INDEX memory_xid ON rota.memory (xid) WHERE xid IS NOT NULL;
-- Whether a wait has taken a signal, and where a job's round begins: by one probe, however much the job remembers.
CREATE INDEX memory_ref ON rota.memory (job, ref) WHERE ref IS NOT NULL;
CREATE INDEX memory_round ON rota.memory (job, id) WHERE kind = 'round';

-- The memory of finished jobs, in segments that belong to those of rota.finished.
CREATE TABLE rota.finished_memory (
    id      bigint NOT NULL,
    job     bigint NOT NULL,
    at      timestamptz NOT NULL,
    until   timestamptz,
    segment smallint NOT NULL,
    kind    text NOT NULL,
    name    text NOT NULL,
    ref     text,
    value   json
) PARTITION BY LIST (segment);
CREATE TABLE rota.finished_memory_0 PARTITION OF rota.finished_memory FOR VALUES IN (0);
CREATE TABLE rota.finished_memory_1 PARTITION OF rota.finished_memory FOR VALUES IN (1);
CREATE TABLE rota.finished_memory_2 PARTITION OF rota.finished_memory FOR VALUES IN (2);
CREATE TABLE rota.finished_memory_3 PARTITION OF rota.finished_memory FOR VALUES IN (3);
CREATE TABLE rota.finished_memory_4 PARTITION OF rota.finished_memory FOR VALUES IN (4);
CREATE TABLE rota.finished_memory_5 PARTITION OF rota.finished_memory FOR VALUES IN (5);
CREATE TABLE rota.finished_memory_discarded PARTITION OF rota.finished_memory FOR VALUES IN (-1);
CREATE INDEX finished_memory_order ON rota.finished_memory (job, id);

-- In which snapshot signals and waits have been compared; the highest seq counts.
CREATE TABLE rota.signal_mark (
    seq      bigint PRIMARY KEY,
    snapshot pg_snapshot NOT NULL
);
INSERT INTO rota.signal_mark VALUES (0, pg_current_snapshot());

-- The signals that no wait has taken, the oldest of each name first by `id`. One that was sent twice under one id counts once.
CREATE VIEW rota.mail AS
SELECT signal.job, signal.id, signal.name, signal.ref, signal.value
FROM rota.memory AS signal
WHERE signal.kind = 'signal'
  AND coalesce((
    SELECT false FROM rota.memory AS round
    WHERE round.job = signal.job AND round.id > signal.id AND round.kind = 'round' LIMIT 1), true)
  -- An answer of an earlier round does not count. Subqueries, so that each is one probe whatever the planner believes.
  AND coalesce((
    SELECT false FROM rota.memory AS answer
    WHERE answer.job = signal.job AND answer.ref = signal.ref AND answer.kind = 'answer' AND coalesce((
        SELECT false FROM rota.memory AS round
        WHERE round.job = answer.job AND round.id > answer.id AND round.kind = 'round' LIMIT 1), true)
    LIMIT 1), true);


-- Flows -----------------------------------------------------------------------------------------

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


-- Counting --------------------------------------------------------------------------------------

-- A statement that changes the number of waiting or finished jobs appends one row per lane, state and
-- expiry; the jobs themselves are never counted. `expires` is when the jobs are out of sight:
-- `keep_until` of finished ones, else infinity; -infinity where the jobs were not kept. Jobs that are taken out of the log by hand are 'removed',
-- and 'appended' by the transaction `appended_by` whose rows they were: since these are gone, that row
-- stands for them, but only as long as no mark has counted them.
CREATE SEQUENCE rota.tally_turn MINVALUE 0 START 0;
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
-- taken out by hand), an expiry and a number of jobs. `claimed` is the sum of the `taken` of lanes in use.
-- Who reads this table reads the two that inherit from it, which are a ring, and where all but the first mark
-- are. (A partitioned table could not have replaced this one under older versions of Rota.)
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
CREATE SEQUENCE rota.tally_mark_turn MINVALUE 0 START 0;
CREATE TABLE rota.tally_mark_0 (PRIMARY KEY (seq)) INHERITS (rota.tally_mark) WITH (autovacuum_enabled = false);
CREATE TABLE rota.tally_mark_1 (PRIMARY KEY (seq)) INHERITS (rota.tally_mark) WITH (autovacuum_enabled = false);


-- History ---------------------------------------------------------------------------------------

-- What happened in each minute, by queue, for seven days: a ring. The queue '' stands for all together, and its rows say
-- which minutes were recorded; a queue in which nothing happened and nothing waits has no row. The `total_` columns are
-- the running totals from which the next difference is taken. `span` is how many minutes that difference took to come about:
-- more than one after minutes in which no worker looked, 0 where nothing is known of before.
CREATE SEQUENCE rota.history_turn MINVALUE 0 START 0;
CREATE SEQUENCE rota.history_begun MINVALUE 0 START 0;
SELECT setval('rota.history_begun', extract(epoch FROM now())::int8);
-- The newest minute that was recorded, since 1970; 0: no difference can be taken from what is there.
CREATE SEQUENCE rota.history_recorded MINVALUE 0 START 0;
CREATE TABLE rota.history (
    minute          timestamptz NOT NULL,
    total_appended  bigint NOT NULL,
    total_claimed   bigint NOT NULL,
    total_completed bigint NOT NULL,
    total_discarded bigint NOT NULL,
    span            integer NOT NULL,
    appended        integer NOT NULL,
    claimed         integer NOT NULL,
    completed       integer NOT NULL,
    discarded       integer NOT NULL,
    available       integer NOT NULL,   -- at the end of the minute
    oldest          real,               -- seconds since the job that is next was enqueued
    segment         smallint NOT NULL,
    queue           text NOT NULL,
    PRIMARY KEY (queue, minute, segment)
) PARTITION BY LIST (segment);
CREATE TABLE rota.history_0 PARTITION OF rota.history FOR VALUES IN (0);
CREATE TABLE rota.history_1 PARTITION OF rota.history FOR VALUES IN (1);
CREATE TABLE rota.history_2 PARTITION OF rota.history FOR VALUES IN (2);
CREATE TABLE rota.history_3 PARTITION OF rota.history FOR VALUES IN (3);
CREATE TABLE rota.history_4 PARTITION OF rota.history FOR VALUES IN (4);


-- Lanes and their cursors, as claims and counts look at them -------------------------------------

-- A key costs nothing while none of its jobs is in the log: lanes without rows there are not walked, and
-- have no cursor entry.

-- Whether there are so few lanes that looking at each of them is cheaper than asking the log which are
-- in use. Lanes are numbered with few gaps.
CREATE VIEW rota.lane_few AS SELECT last_value <= 2000 AS few FROM rota.lane_id_seq;

-- The lanes that may have rows in the log. Walks the primary key of rota.lane where there are few, else
-- log_order from lane to lane, with one probe for each; once for a statement, however often a subquery
-- asks. `walk` is read once, since a number that another transaction takes shows at once.
CREATE VIEW rota.lane_used AS
WITH RECURSIVE walk AS MATERIALIZED (
    SELECT few FROM rota.lane_few
), used AS (
    (SELECT job.lane FROM rota.log AS job
     WHERE NOT (SELECT few FROM walk)
     ORDER BY job.lane, job.xid, job.id LIMIT 1)
    UNION ALL
    SELECT next.lane FROM used
    CROSS JOIN LATERAL (
        SELECT job.lane FROM rota.log AS job WHERE job.lane > used.lane
        ORDER BY job.lane, job.xid, job.id LIMIT 1
    ) AS next
), known AS MATERIALIZED (
    SELECT lane.id, lane.queue, lane.priority, lane.of_key
    FROM used
    CROSS JOIN LATERAL (
        SELECT id, queue, priority, keyed, limit_id, fair, of_key, made_by FROM rota.lane
        WHERE id = used.lane LIMIT 1
    ) AS lane
)
SELECT lane.id, lane.queue, lane.priority, lane.of_key
FROM rota.lane WHERE (SELECT few FROM walk)
UNION ALL
SELECT id, queue, priority, of_key FROM known;

-- How far each lane has been handed out. The lane of a key without a cursor entry is at its beginning: none
-- of its rows, those to come included, has been handed out.
CREATE VIEW rota.lane_place AS
SELECT lane.id AS lane, coalesce(newest.xid, '0') AS xid, coalesce(newest.id, 0) AS id,
       coalesce(newest.hole_xids, '{}') AS hole_xids, coalesce(newest.hole_ids, '{}') AS hole_ids
FROM rota.lane
LEFT JOIN LATERAL (
    SELECT place.* FROM rota.cursor AS place WHERE place.lane = lane.id
    ORDER BY place.lane DESC, place.seq DESC LIMIT 1
) AS newest ON true
-- A plain lane always has one, but for a reader whose snapshot is older than the copy.
WHERE lane.of_key OR newest.lane IS NOT NULL;

-- The newest cursor entry of each lane that has one. Walks cursor_order downwards, with one probe for each.
CREATE VIEW rota.cursor_newest AS
WITH RECURSIVE newest AS (
    (SELECT place.* FROM rota.cursor AS place ORDER BY place.lane DESC, place.seq DESC LIMIT 1)
    UNION ALL
    SELECT below.* FROM newest
    CROSS JOIN LATERAL (
        SELECT place.* FROM rota.cursor AS place WHERE place.lane < newest.lane
        ORDER BY place.lane DESC, place.seq DESC LIMIT 1
    ) AS below
)
SELECT * FROM newest;

-- The lanes of keys whose limits have a place, with their cursors and with how many places there are
-- (null: no limit). Exact for the claim that has the turn, see keyed_lock.sql; for others it was so a
-- moment ago. Walks lane_keyed and stops where its reader does; where there is no place it reads
-- nothing more. A lane without a cursor entry is at its beginning.
CREATE VIEW rota.lane_open AS
SELECT lane.queue, lane.priority, lane.id AS lane, lane.limit_id, free.places,
       limit_key.rate_count IS NOT NULL AS rated, coalesce(place.seq, 0) AS seq,
       coalesce(place.xid, '0') AS xid, coalesce(place.id, 0) AS id, coalesce(place.taken, 0) AS taken,
       coalesce(place.hole_xids, '{}') AS hole_xids, coalesce(place.hole_ids, '{}') AS hole_ids,
       limit_key.key AS limit_key
FROM rota.lane
LEFT JOIN rota.limit_key ON limit_key.id = lane.limit_id
CROSS JOIN LATERAL (
    SELECT least(
        limit_key.running - coalesce((
            -- Made once, then looked up: there may be as many limits as there are lanes.
            SELECT jsonb_object_agg(held.limit_id, held.jobs)
            FROM (
                SELECT one.limit_id, count(*) AS jobs
                FROM rota.lease CROSS JOIN LATERAL unnest(lease.limits) AS one (limit_id)
                WHERE lease.limits IS NOT NULL
                GROUP BY one.limit_id
            ) AS held
        ) ->> lane.limit_id::text, '0')::int8,
        limit_key.rate_count - CASE WHEN limit_key.rate_count IS NOT NULL THEN (
            SELECT coalesce(sum(start.jobs), 0) FROM rota.limit_start AS start
            WHERE start.limit_id = lane.limit_id
              -- Asked once, as a value: compared with the function itself no index would be walked.
              AND start.at > (SELECT clock_timestamp())
                             - make_interval(secs => limit_key.rate_seconds::float8)
        ) END) AS places
    OFFSET 0
) AS free
LEFT JOIN LATERAL (
    SELECT place.* FROM rota.cursor AS place
    WHERE place.lane = lane.id AND coalesce(free.places > 0, true)
    ORDER BY place.lane DESC, place.seq DESC LIMIT 1
) AS place ON true
WHERE lane.of_key AND coalesce(free.places > 0, true);

-- Those of them that have something to claim.
CREATE VIEW rota.lane_ready AS
SELECT used.queue, used.priority, place.lane, place.limit_id, place.places, place.rated, place.seq,
       place.xid, place.id, place.taken, place.hole_xids, place.hole_ids
FROM rota.lane_used AS used
CROSS JOIN LATERAL (SELECT * FROM rota.lane_open WHERE lane_open.lane = used.id LIMIT 1) AS place
WHERE used.of_key AND (coalesce((
        SELECT true FROM rota.log AS job
        WHERE job.lane = place.lane AND (job.xid, job.id) > (place.xid, place.id)
        ORDER BY job.lane, job.xid, job.id LIMIT 1), false)
   OR coalesce((
        SELECT true
        FROM unnest(place.hole_xids, place.hole_ids) AS hole (xid, id)
        CROSS JOIN LATERAL (
            SELECT FROM rota.log AS job
            WHERE job.lane = place.lane AND job.xid = hole.xid AND job.id > hole.id LIMIT 1) AS job
        LIMIT 1), false));

-- Whether the tables were restored here from a dump: the cluster has another name, or there are transaction
-- ids that are still to come here. A clone of a cluster's files has its name, and goes on from its ids.
-- Whatever a snapshot shows lies before its xmax. A few probes, of which none walks dead rows, for each
-- sign of life of a worker, in tables that are never locked for long: a lane that has nothing in the log
-- does no harm, and is not looked at. origin_check.sql looks at more when a worker starts.
CREATE VIEW rota.restored AS
SELECT EXISTS (
        SELECT FROM rota.origin, pg_control_system() AS here
        WHERE origin.system_identifier <> here.system_identifier)
    OR coalesce((
        SELECT pg_snapshot_xmax(mark.snapshot) > pg_snapshot_xmax(pg_current_snapshot())
        FROM rota.tally_mark AS mark ORDER BY mark.seq DESC LIMIT 1), false)
    OR coalesce((
        SELECT pg_snapshot_xmax(mark.snapshot) > pg_snapshot_xmax(pg_current_snapshot())
        FROM rota.timer_mark AS mark ORDER BY mark.seq DESC LIMIT 1), false)
    OR EXISTS (
        WITH RECURSIVE used AS (
            (SELECT job.lane FROM rota.log AS job ORDER BY job.lane, job.xid, job.id LIMIT 1)
            UNION ALL
            SELECT next.lane FROM used
            CROSS JOIN LATERAL (
                SELECT job.lane FROM rota.log AS job WHERE job.lane > used.lane
                ORDER BY job.lane, job.xid, job.id LIMIT 1
            ) AS next
        )
        SELECT FROM (SELECT lane FROM used LIMIT 1000) AS used
        CROSS JOIN LATERAL (
            SELECT place.xid FROM rota.cursor AS place WHERE place.lane = used.lane
            ORDER BY place.lane DESC, place.seq DESC LIMIT 1
        ) AS place
        WHERE place.xid >= pg_snapshot_xmax(pg_current_snapshot())) AS sure;

-- The totals of this moment: those of the newest mark, and what came since. What came since is what
-- transactions wrote that were running at the mark or began later. The log itself says what was
-- appended, so that a producer writes nothing more: copies of leased rows keep their xid and do not
-- count again. `recent` is how many rows were looked at, zero where the mark says it all. Plain lanes
-- stand for the lanes of keys of their queue and priority, so that a mark does not grow with the keys.
-- An array of xids would not do for the log: on an empty table a plan may filter by it.
-- 'completed' and 'discarded' with the expiry -infinity are no jobs that are there, but running totals: how many
-- ever ended so.
CREATE VIEW rota.counter AS
WITH mark AS MATERIALIZED (
    SELECT newest.*, pg_snapshot_xmax(newest.snapshot) AS later,
           ARRAY(SELECT pg_snapshot_xip(newest.snapshot)) AS running
    FROM rota.tally_mark AS newest ORDER BY newest.seq DESC LIMIT 1
), change AS (
    SELECT lane.id AS lane, 'appended' AS state, 'infinity'::timestamptz AS expires, came.jobs,
           came.jobs AS recent
    FROM mark CROSS JOIN rota.lane_used AS lane
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
    SELECT tally.lane, tally.state, one.expires, one.jobs, one.recent
    FROM mark
    CROSS JOIN LATERAL (
        SELECT tally.* FROM rota.tally WHERE tally.xid >= mark.later
        UNION ALL
        SELECT tally.* FROM rota.tally WHERE tally.xid = ANY (mark.running)
    ) AS tally
    CROSS JOIN LATERAL (
        SELECT tally.expires, CASE WHEN pg_visible_in_snapshot(tally.appended_by, mark.snapshot)
                                   THEN 0 ELSE tally.jobs END AS jobs, 1 AS recent
        UNION ALL
        SELECT '-infinity', tally.jobs, 0
        WHERE tally.jobs > 0 AND tally.state IN ('completed', 'discarded') AND tally.expires > '-infinity'
    ) AS one
)
SELECT plain.id AS lane, part.state, part.expires, sum(part.jobs)::bigint AS jobs,
       sum(part.recent)::bigint AS recent
FROM (
    SELECT total.lane, total.state, total.expires, total.jobs, 0 AS recent
    FROM mark
    CROSS JOIN LATERAL unnest(mark.lanes, mark.states, mark.expires, mark.jobs)
        AS total (lane, state, expires, jobs)
    UNION ALL
    SELECT * FROM change
) AS part
CROSS JOIN LATERAL (
    SELECT plain.id FROM rota.lane
    JOIN rota.lane AS plain
      ON plain.queue = lane.queue AND plain.priority = lane.priority AND NOT plain.of_key
    WHERE lane.id = part.lane LIMIT 1
) AS plain
GROUP BY plain.id, part.state, part.expires;


-- For people ------------------------------------------------------------------------------------

-- Every job with its state: SELECT * FROM rota.job WHERE id = 42. The columns of the four branches are
-- those of JobRecord in src/rota/model/job.py.
CREATE VIEW rota.job AS
SELECT timer.id, timer.task, timer.args, lane.queue, lane.priority, timer.state,
       timer.attempt, timer.max_attempts, timer.timeout, timer.enqueued_at,
       CASE WHEN timer.state <> 'available' THEN timer.run_at END AS scheduled_at,
       NULL::timestamptz AS finished_at, NULL::json AS result, timer.errors, NULL::text AS worker,
       timer.unique_key, timer.iteration, timer.last_run, timer.headers
FROM rota.timer
JOIN rota.lane ON lane.id = timer.lane
WHERE timer.unique_key IS NULL OR coalesce((
    SELECT true FROM rota.unique_key AS held
    WHERE held.key = timer.unique_key AND held.task = timer.task AND held.job = timer.id
      AND held.entry = timer.entry), false)
UNION ALL
SELECT job.id, job.task, job.args, lane.queue, lane.priority, 'available',
       job.attempt, job.max_attempts, job.timeout, job.enqueued_at,
       NULL, NULL, NULL, job.errors, NULL, job.unique_key, job.iteration, job.last_run, job.headers
FROM rota.log AS job
JOIN rota.lane ON lane.id = job.lane
CROSS JOIN LATERAL (
    SELECT * FROM rota.lane_place WHERE lane_place.lane = job.lane LIMIT 1
) AS place
WHERE ((job.xid, job.id) > (place.xid, place.id)
    OR job.id > place.hole_ids[array_position(place.hole_xids, job.xid)])
  AND (job.unique_key IS NULL OR coalesce((
    SELECT true FROM rota.unique_key AS held
    WHERE held.key = job.unique_key AND held.task = job.task AND held.job = job.id
      AND held.entry = job.entry), false))
UNION ALL
SELECT held.id, job.task, job.args, lane.queue, lane.priority, 'running',
       (job.attempt + 1)::smallint, job.max_attempts, job.timeout, job.enqueued_at,
       NULL, NULL, NULL, job.errors, session.host || ':' || session.pid,
       job.unique_key, job.iteration, job.last_run, job.headers
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
       NULL, finished_at, result, errors, NULL, unique_key, iteration, last_run, headers
FROM rota.finished
WHERE keep_until > now();

-- Every cron entry with its newest mark: SELECT * FROM rota.cron. Entries that come from code and are in
-- the code of no worker that is alive are `undeclared`, and are not run.
CREATE VIEW rota.cron AS
SELECT entry.id, entry.name, entry.expression, entry.timezone, entry.missed, entry.jitter, entry.task,
       entry.args, entry.parameter, entry.queue, entry.priority, entry.max_attempts, entry.timeout,
       entry.paused, entry.declaration IS NOT NULL AS declared,
       entry.declaration IS NOT NULL AND NOT EXISTS (
           SELECT FROM rota.cron_worker AS worker
           JOIN rota.session ON session.id = worker.session
           WHERE entry.name = ANY (worker.entries)) AS undeclared,
       mark.seq, mark.since, mark.due, mark.last, entry.created_at, entry.options
FROM rota.cron_entry AS entry
CROSS JOIN LATERAL (
    SELECT newest.* FROM rota.cron_mark AS newest WHERE newest.entry = entry.id
    ORDER BY newest.entry DESC, newest.seq DESC LIMIT 1
) AS mark;


-- Functions -------------------------------------------------------------------------------------

-- Store one job from SQL, for triggers and other languages, in the transaction of the caller; gives its
-- id. See docs/guides/sql.md. It refuses what Python refuses, writes the rows that Rota's own enqueue.sql and
-- enqueue_later.sql write, and wakes workers as they do. It runs with the caller's rights. `args` is
-- json, jsonb or text: of two functions, one for json and one for jsonb, PostgreSQL could not choose for
-- an untyped literal. Headers are those of the setting `rota.headers`: SET LOCAL has them for all triggers of
-- a transaction.
-- Locks: nothing that another producer waits for, but for the very first job of a queue and
-- priority, which makes their lane here: other first ones wait until this transaction ends.
CREATE FUNCTION rota.enqueue(
    task         text,
    args         anycompatible DEFAULT '{}'::json,
    queue        text DEFAULT 'default',
    priority     integer DEFAULT 0,
    delay        interval DEFAULT NULL,
    run_at       timestamptz DEFAULT NULL,
    max_attempts integer DEFAULT NULL,
    timeout      interval DEFAULT NULL
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    job     bigint;
    in_lane integer;
    name    record;
    seconds float8 := extract(epoch FROM enqueue.timeout);
    attempts integer := enqueue.max_attempts;
    given   text := enqueue.args::text;
    object  jsonb;
    notes   text := nullif(current_setting('rota.headers', true), '');
    detail  text;
    century CONSTANT bigint := 3162240000;
    largest CONSTANT numeric := 1.7976931348623157e308;
    -- What Python's str.isprintable refuses, but for what Unicode has not assigned yet.
    unprintable CONSTANT text :=
        '[\u0001-\u001F\u007F-\u00A0\u00AD\u0600-\u0605\u061C\u06DD\u070F\u0890\u0891\u08E2\u1680'
        '\u180E\u2000-\u200F\u2028-\u202F\u205F-\u206F\u3000\uE000-\uF8FF\uFEFF\uFFF9-\uFFFB'
        '\U000110BD\U000110CD\U00013430-\U0001343F\U0001BCA0-\U0001BCA3\U0001D173-\U0001D17A'
        '\U000E0001-\U000E007F\U000F0000-\U0010FFFF]';
BEGIN
    FOR name IN VALUES ('task', enqueue.task), ('queue', enqueue.queue) LOOP
        IF name.column2 IS NULL OR length(name.column2) NOT BETWEEN 1 AND 200
           OR name.column2 ~ '^ | $' OR name.column2 ~ unprintable THEN
            RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
                MESSAGE = format('%s: a name of 1 to 200 printable characters is needed, without '
                                 'blanks around it, not %L', name.column1, name.column2),
                HINT = CASE name.column1
                    WHEN 'task' THEN 'It is the name of a task, such as shop.send_receipt.'
                    ELSE 'Leave it out for the queue "default".' END;
        END IF;
    END LOOP;
    IF octet_length(given) > 1000000 THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('args: %s bytes, the limit is 1000000', octet_length(given)),
            HINT = 'Store the data elsewhere and pass a reference.';
    END IF;
    BEGIN
        -- jsonb refuses text that json lets pass and nobody can read.
        object := given::jsonb;
    EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
        GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = concat_ws(': ', 'args', SQLERRM, nullif(detail, '')),
            HINT = 'They are JSON, without \u0000 and without halves of surrogate pairs.';
    END;
    IF given IS NULL OR jsonb_typeof(object) <> 'object' THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('args: a JSON object is needed, not %s',
                             coalesce(jsonb_typeof(object), 'NULL')),
            HINT = 'Name the parameters of the task, as in {"order_id": 42}; {} if it has none.';
    END IF;
    IF jsonb_path_exists(object, 'strict $.**{102}') THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = 'args: nested more than 100 levels deep', HINT = 'Flatten them.';
    END IF;
    -- Integers are told from floats by how they are written: 1e30 is one, thirty zeros are the other.
    IF given ~ '[0-9]{19}|[0-9][eE]' AND EXISTS (
        SELECT FROM jsonb_path_query(object, 'strict $.** ? (@ > 9223372036854775807
            || @ < -9223372036854775808 || (@ != 0 && @.abs() < 4.9e-324))') AS number
        WHERE number::numeric NOT BETWEEN -largest AND largest
           OR abs(number::numeric) < 1
           OR (number::text ~ '^-?[0-9]+$' AND strpos(given, number::text) > 0)
    ) THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = 'args: a number is an integer beyond 64 bits, or no float can hold it',
            HINT = 'Pass it as text: in {"amount": "12345678901234567890"} it comes as it is.';
    END IF;
    IF octet_length(notes) > 4096 THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('rota.headers: %s bytes, the limit is 4096', octet_length(notes)),
            HINT = 'They are for marks such as a trace; what the task works on belongs in args.';
    END IF;
    BEGIN
        object := notes::jsonb;
    EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
        object := 'null';
    END;
    IF jsonb_typeof(object) <> 'object' OR EXISTS (
        SELECT FROM jsonb_each(CASE WHEN jsonb_typeof(object) = 'object' THEN object END) AS header
        WHERE jsonb_typeof(header.value) <> 'string' OR header.key = '' OR starts_with(header.key, 'rota.')
    ) THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = 'rota.headers: a JSON object of texts is needed, with names that do not begin with rota.',
            HINT = 'Write SET LOCAL rota.headers = ''{"traceparent": "00-4bf9-00f0-01"}''.';
    END IF;
    notes := nullif(notes, '{}');
    IF enqueue.priority IS NULL OR enqueue.priority NOT BETWEEN -32768 AND 32767 THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('priority: a whole number between -32768 and 32767, not %s',
                             coalesce(enqueue.priority::text, 'NULL')),
            HINT = 'Smaller ones come first; leave it out for 0.';
    END IF;
    IF enqueue.max_attempts NOT BETWEEN 1 AND 30000 THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('max_attempts: between 1 and 30000 attempts are possible, not %s',
                             enqueue.max_attempts),
            HINT = 'Leave it out for what is set for the queue, or else 5.';
    END IF;
    IF enqueue.delay IS NOT NULL AND enqueue.run_at IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = 'delay and run_at exclude each other', HINT = 'Give one of them.';
    END IF;
    IF extract(epoch FROM enqueue.delay) NOT BETWEEN 0 AND century THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('delay: between 0 and %s seconds are possible, not %s', century,
                             enqueue.delay),
            HINT = 'Say how long to wait from now on, such as interval ''10 minutes''.';
    END IF;
    IF enqueue.run_at < '0001-01-01 00:00+00'
       OR enqueue.run_at > clock_timestamp() + make_interval(secs => century) THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('run_at: a moment after the year 0 and at most a century from now is '
                             'needed, not %s', enqueue.run_at),
            HINT = 'Give one with its time zone, such as ''2030-01-01 08:00+01''.';
    END IF;
    IF seconds <= 0 OR seconds > century THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('timeout: more than 0 and at most %s seconds are possible, not %s',
                             century, enqueue.timeout),
            HINT = 'Leave it out for what is set for the queue, or else no limit.';
    END IF;

    SELECT coalesce(attempts, setting.max_attempts), coalesce(seconds, setting.timeout)
    INTO attempts, seconds
    FROM (SELECT) AS nothing LEFT JOIN rota.queue_setting AS setting ON setting.queue = enqueue.queue;
    attempts := coalesce(attempts, 5);

    SELECT lane.id INTO in_lane FROM rota.lane
    WHERE lane.queue = enqueue.queue AND lane.priority = enqueue.priority AND NOT lane.of_key;
    IF in_lane IS NULL THEN
        INSERT INTO rota.queue (name) VALUES (enqueue.queue) ON CONFLICT DO NOTHING;
        INSERT INTO rota.lane (queue, priority) VALUES (enqueue.queue, enqueue.priority)
        ON CONFLICT DO NOTHING;
        SELECT lane.id INTO in_lane FROM rota.lane
        WHERE lane.queue = enqueue.queue AND lane.priority = enqueue.priority AND NOT lane.of_key
        FOR NO KEY UPDATE;
        INSERT INTO rota.cursor (slot, lane, seq, xid, id, taken, hole_xids, hole_ids)
        SELECT (SELECT last_value % 2 FROM rota.cursor_turn), in_lane, 0, '0', 0, 0, '{}', '{}'
        WHERE NOT EXISTS (SELECT FROM rota.cursor WHERE cursor.lane = in_lane);
    END IF;

    job := nextval('rota.job_id');
    IF coalesce(enqueue.run_at <= clock_timestamp(), true)
       AND coalesce(enqueue.delay, interval '0') = interval '0' THEN
        INSERT INTO rota.log (id, lane, segment, max_attempts, timeout, task, headers, args)
        SELECT job, in_lane, (SELECT last_value % 4 FROM rota.log_turn), attempts,
               seconds, enqueue.task, notes::json, given::json;
    ELSE
        INSERT INTO rota.timer (id, lane, run_at, max_attempts, timeout, task, headers, args)
        SELECT job, in_lane, coalesce(enqueue.run_at, clock_timestamp() + enqueue.delay),
               attempts, seconds, enqueue.task, notes::json, given::json;
        INSERT INTO rota.tally (slot, lane, state, jobs)
        SELECT (SELECT last_value % 2 FROM rota.tally_turn), in_lane, 'scheduled', 1;
    END IF;

    -- A worker of this queue that may be asleep holds the lock; see enqueue.sql.
    IF pg_try_advisory_lock(7682001, hashtext(enqueue.queue)) THEN
        PERFORM pg_advisory_unlock(7682001, hashtext(enqueue.queue));
    ELSE
        PERFORM pg_notify('rota', concat_ws(' ', pg_current_xact_id(), enqueue.queue));
    END IF;
    RETURN job;
END
$$;
COMMENT ON FUNCTION rota.enqueue IS 'Store a job for Rota''s workers; it is there when you commit.';

-- Lock the keys of jobs that have not started, in the order given; gives those that were locked. A
-- replacement in a transaction that stays open shall lock no job that runs. But a claim that commits
-- between the snapshot and the lock leaves PostgreSQL with a lock on the row of a job that runs by now,
-- which the statement does not even give: the job's settlement would wait until this transaction ends.
-- So where a row was seen and not given, all locks are given back, and the function begins again.
CREATE FUNCTION rota.lock_waiting(task text, keys text[]) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    locked text[];
    lost   boolean;
BEGIN
    LOOP
        BEGIN
            SELECT array_agg(held.key) FILTER (WHERE held.key IS NOT NULL),
                   bool_or(held.key IS NULL AND EXISTS (
                       SELECT FROM rota.unique_key AS seen
                       WHERE seen.key = wanted.key AND seen.task = lock_waiting.task
                         AND seen.state IN ('scheduled', 'available', 'retryable')))
            INTO locked, lost
            FROM unnest(lock_waiting.keys) AS wanted (key)
            LEFT JOIN LATERAL (
                SELECT held.key FROM rota.unique_key AS held
                WHERE held.key = wanted.key AND held.task = lock_waiting.task
                  AND held.state IN ('scheduled', 'available', 'retryable')
                FOR UPDATE
            ) AS held ON true;
            IF NOT lost THEN
                RETURN coalesce(locked, '{}');
            END IF;
            RAISE SQLSTATE 'RT001';
        EXCEPTION WHEN SQLSTATE 'RT001' THEN
            NULL;
        END;
    END LOOP;
END
$$;
COMMENT ON FUNCTION rota.lock_waiting IS 'Lock keys whose jobs have not started, and no others.';

-- Send a signal to a job, in the transaction of the caller: see docs/guides/steps.md. It refuses what Python refuses.
-- Locks: nothing.
CREATE FUNCTION rota.signal(
    job     bigint,
    name    text,
    payload anycompatible DEFAULT 'null'::json,
    id      text DEFAULT NULL
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    given  text := coalesce(signal.payload::text, 'null');
    state  text;
    number bigint := nextval('rota.memory_id');
BEGIN
    IF signal.name IS NULL OR length(signal.name) NOT BETWEEN 1 AND 200 OR signal.name ~ '^ | $|[[:cntrl:]]|#' THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('signal: a name of 1 to 200 printable characters is needed, without # and blanks around it, not %L',
                             signal.name),
            HINT = 'It is the name for which the job waits.';
    END IF;
    IF signal.id IS NOT NULL AND length(signal.id) NOT BETWEEN 1 AND 200 THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('id: 1 to 200 characters are needed, not %L', signal.id),
            HINT = 'It tells a signal that is sent twice from two signals; leave it out if none is.';
    END IF;
    IF octet_length(given) > 1000000 THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('payload: %s bytes, the limit is 1000000', octet_length(given)),
            HINT = 'Store the data elsewhere and send a reference.';
    END IF;
    BEGIN
        PERFORM given::jsonb;
    EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = 'payload: JSON is needed', HINT = 'Cast it: payload => ''{"by": "Ada"}''.';
    END;
    -- Most jobs that are told something wait; to look everywhere takes longer.
    SELECT timer.state INTO state FROM rota.timer
    WHERE timer.id = signal.job AND (timer.unique_key IS NULL OR coalesce((
        SELECT true FROM rota.unique_key AS held
        WHERE held.key = timer.unique_key AND held.task = timer.task AND held.job = timer.id
          AND held.entry = timer.entry), false));
    IF state IS NULL THEN
        SELECT found.state INTO state FROM rota.job AS found WHERE found.id = signal.job;
    END IF;
    IF state IS NULL OR state IN ('completed', 'discarded', 'cancelled') THEN
        RAISE EXCEPTION USING ERRCODE = 'no_data_found',
            MESSAGE = CASE WHEN state IS NULL THEN format('there is no job %s', signal.job)
                           ELSE format('job %s was %s: it takes no signals any more', signal.job, state) END,
            HINT = 'Signals are for jobs that have not ended.';
    END IF;
    INSERT INTO rota.memory (slot, id, xid, job, kind, name, ref, value)
    SELECT (SELECT last_value % 2 FROM rota.memory_turn), number, pg_current_xact_id(), signal.job, 'signal',
           signal.name, signal.name || coalesce('=' || signal.id, '#' || number), given::json;
END
$$;
COMMENT ON FUNCTION rota.signal IS 'Send a signal to a job; it is there when you commit.';


-- Audit -----------------------------------------------------------------------------------------

-- What people did on the dashboard. `what` says to what it was done, a JSON object; `changed` how many jobs, queues
-- or entries that has changed. An action on everything that matches is carried out by a `job`, which has come up to
-- `position`. The newest 10,000 rows stay: each new one removes what is older.
CREATE TABLE rota.audit (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at       timestamptz NOT NULL DEFAULT now(),
    changed  bigint NOT NULL DEFAULT 0,
    job      bigint,
    who      text NOT NULL,
    action   text NOT NULL,
    what     json NOT NULL,
    position text
);


-- Replication -----------------------------------------------------------------------------------

-- Under a publication PostgreSQL refuses to change or delete rows that it cannot name to a subscriber.
-- A table without a primary key names them by all their columns: nothing is written for that unless
-- `wal_level` is `logical`.
DO $$
DECLARE
    one regclass;
BEGIN
    FOR one IN
        SELECT entry.oid FROM pg_class AS entry
        WHERE entry.relnamespace = 'rota'::regnamespace AND entry.relkind IN ('r', 'p')
          AND NOT EXISTS (SELECT FROM pg_index WHERE indrelid = entry.oid AND indisprimary)
        ORDER BY entry.relname
    LOOP
        EXECUTE format('ALTER TABLE %s REPLICA IDENTITY FULL', one);
    END LOOP;
END
$$;
