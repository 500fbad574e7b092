-- Headers: names and texts that travel with a job.
-- Expands: older code writes none, and what it writes again, such as a job that failed, comes back without them.

ALTER TABLE rota.log ADD COLUMN headers json;
ALTER TABLE rota.timer ADD COLUMN headers json;
ALTER TABLE rota.finished ADD COLUMN headers json;

-- Every job with its state: SELECT * FROM rota.job WHERE id = 42. The columns of the four branches are
-- those of JobRecord in src/rota/model/job.py.
CREATE OR REPLACE VIEW rota.job AS
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

-- Store one job from SQL, for triggers and other languages, in the transaction of the caller; gives its
-- id. See docs/sql.md. It refuses what Python refuses, writes the rows that Rota's own enqueue.sql and
-- enqueue_later.sql write, and wakes workers as they do. It runs with the caller's rights. `args` is
-- json, jsonb or text: of two functions, one for json and one for jsonb, PostgreSQL could not choose for
-- an untyped literal. Headers are those of the setting `rota.headers`: SET LOCAL has them for all triggers of
-- a transaction.
-- Locks: nothing that another producer waits for, but for the very first job of a queue and
-- priority, which makes their lane here: other first ones wait until this transaction ends.
CREATE OR REPLACE FUNCTION rota.enqueue(
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
