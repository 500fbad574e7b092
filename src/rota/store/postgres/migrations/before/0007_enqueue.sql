-- rota.enqueue(): storing a job from SQL, for triggers and other languages. See docs/sql.md.

-- Store one job, in the transaction of whoever calls; its id. It writes the rows that Rota's own
-- enqueue.sql and enqueue_later.sql write, and wakes workers as they do. It runs with the caller's
-- rights.
-- Locks: nothing that another producer waits for, but for the very first job of a queue and
-- priority, which makes their lane here: other first ones wait until this transaction ends.
CREATE FUNCTION rota.enqueue(
    task         text,
    args         json DEFAULT '{}',
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
BEGIN
    FOR name IN VALUES ('task', enqueue.task), ('queue', enqueue.queue) LOOP
        IF name.column2 IS NULL OR name.column2 !~ '^[^[:cntrl:]]{1,200}$'
           OR name.column2 ~ '^\s|\s$' THEN
            RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
                MESSAGE = format('%s: a name of 1 to 200 printable characters is needed, without '
                                 'blanks around it, not %L', name.column1, name.column2),
                HINT = CASE name.column1
                    WHEN 'task' THEN 'It is the name of a task, such as shop.send_receipt.'
                    ELSE 'Leave it out for the queue "default".' END;
        END IF;
    END LOOP;
    IF enqueue.args IS NULL OR json_typeof(enqueue.args) <> 'object' THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('args: a JSON object is needed, not %s',
                             coalesce(json_typeof(enqueue.args), 'NULL')),
            HINT = 'Name the parameters of the task, as in {"order_id": 42}; {} if it has none.';
    END IF;
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
    IF enqueue.delay < interval '0' OR NOT isfinite(enqueue.delay) THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('delay: no negative and no endless time, not %s', enqueue.delay),
            HINT = 'Say how long to wait from now on, such as interval ''10 minutes''.';
    END IF;
    IF NOT isfinite(enqueue.run_at) THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('run_at: a moment is needed, not %s', enqueue.run_at),
            HINT = 'Give one with its time zone, such as ''2030-01-01 08:00+01''.';
    END IF;
    IF seconds <= 0 OR NOT isfinite(enqueue.timeout) THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('timeout: more than no time is needed, not %s', enqueue.timeout),
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
    IF enqueue.run_at IS NULL AND coalesce(enqueue.delay, interval '0') = interval '0' THEN
        INSERT INTO rota.log (id, lane, segment, max_attempts, timeout, task, args)
        SELECT job, in_lane, (SELECT last_value % 4 FROM rota.log_turn), attempts,
               seconds, enqueue.task, enqueue.args;
    ELSE
        INSERT INTO rota.timer (id, lane, run_at, max_attempts, timeout, task, args)
        SELECT job, in_lane, coalesce(enqueue.run_at, clock_timestamp() + enqueue.delay),
               attempts, seconds, enqueue.task, enqueue.args;
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
