-- Unique jobs, and subjects that come round. docs/engine.md explains the design.

-- Who has which key. An entry of a job in the log or the timer that has a `unique_key` counts only while this row
-- names its job and its `entry`: else it is void, and whoever comes to it passes it over. So a job that
-- waits is replaced by appending a new entry and counting `entry` up here; the old one stays where it is.
--
-- `state` and `lane` say where the entry that counts is, so that a replacement can keep the counts
-- without looking for it: 'ended' holds a key until its period is over. Updated at every claim, staging and
-- settlement of a job with a key, all of them HOT: none of the indexed columns ever changes. Under a
-- held snapshot the dead versions of a key stay, as many as it has had turns.
CREATE TABLE rota.unique_key (
    job           bigint NOT NULL,
    xid           xid8 NOT NULL DEFAULT pg_current_xact_id(),   -- who enqueued or replaced it last
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
) WITH (fillfactor = 70);
CREATE INDEX unique_key_until ON rota.unique_key (until) WHERE until IS NOT NULL;

-- Whether a lane ever got a job with a unique key. Claims of other lanes need not ask about keys.
ALTER TABLE rota.lane ADD COLUMN keyed boolean NOT NULL DEFAULT false;

-- `iteration` counts the rounds that ended with Again; null is none. Null columns take no space.
ALTER TABLE rota.log ADD COLUMN unique_key text, ADD COLUMN iteration integer,
    ADD COLUMN last_run timestamptz;
ALTER TABLE rota.finished ADD COLUMN unique_key text, ADD COLUMN iteration integer,
    ADD COLUMN last_run timestamptz;

-- A void entry and the one that counts may both wait here. 'available' is a job of the log that a claim
-- has put aside for a moment, since somebody was about to replace it: it counts as available.
ALTER TABLE rota.timer ADD COLUMN unique_key text, ADD COLUMN iteration integer,
    ADD COLUMN last_run timestamptz,
    DROP CONSTRAINT timer_pkey, ADD PRIMARY KEY (id, entry),
    DROP CONSTRAINT timer_state_check,
    ADD CONSTRAINT timer_state_check CHECK (state IN ('scheduled', 'retryable', 'available'));

CREATE OR REPLACE VIEW rota.job AS
SELECT timer.id, timer.task, timer.args, lane.queue, lane.priority, timer.state,
       timer.attempt, timer.max_attempts, timer.timeout, timer.enqueued_at,
       CASE WHEN timer.state <> 'available' THEN timer.run_at END AS scheduled_at,
       NULL::timestamptz AS finished_at, NULL::json AS result, timer.errors, NULL::text AS worker,
       timer.unique_key, timer.iteration, timer.last_run
FROM rota.timer
JOIN rota.lane ON lane.id = timer.lane
WHERE timer.unique_key IS NULL OR coalesce((
    SELECT true FROM rota.unique_key AS held
    WHERE held.key = timer.unique_key AND held.task = timer.task AND held.job = timer.id
      AND held.entry = timer.entry), false)
UNION ALL
SELECT job.id, job.task, job.args, lane.queue, lane.priority, 'available',
       job.attempt, job.max_attempts, job.timeout, job.enqueued_at,
       NULL, NULL, NULL, job.errors, NULL, job.unique_key, job.iteration, job.last_run
FROM rota.log AS job
JOIN rota.lane ON lane.id = job.lane
CROSS JOIN LATERAL (
    SELECT place.xid, place.id, place.hole_xids, place.hole_ids
    FROM rota.cursor AS place WHERE place.lane = job.lane ORDER BY place.lane DESC, place.seq DESC LIMIT 1
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
       job.unique_key, job.iteration, job.last_run
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
       NULL, finished_at, result, errors, NULL, unique_key, iteration, last_run
FROM rota.finished
WHERE keep_until > now();
