-- What jobs remember across their runs: steps, sleeps, and signals.
-- Expands: older code knows nothing of the tables; it wakes no job for a signal, which newer workers do, and retries a finished job without its memory.

-- What jobs remember across their runs (docs/engine.md, "Memory"). Rows are appended, by whoever holds the job's lease;
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

-- Send a signal to a job, in the transaction of the caller: see docs/steps.md. It refuses what Python refuses.
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

-- As schema.sql does for all tables without a primary key.
DO $$
DECLARE
    one regclass;
BEGIN
    FOREACH one IN ARRAY ARRAY['rota.memory', 'rota.memory_0', 'rota.memory_1', 'rota.finished_memory',
        'rota.finished_memory_0', 'rota.finished_memory_1', 'rota.finished_memory_2', 'rota.finished_memory_3',
        'rota.finished_memory_4', 'rota.finished_memory_5', 'rota.finished_memory_discarded']::regclass[] LOOP
        EXECUTE format('ALTER TABLE %s REPLICA IDENTITY FULL', one);
    END LOOP;
END
$$;
