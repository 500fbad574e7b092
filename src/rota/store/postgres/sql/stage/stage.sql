-- Append due jobs to the log in the order of their time, one statement, hence one snapshot. Says in
-- the tally how many left the timer.
-- `due`: past the mark's (run_at, id), walks timer_due from there and never the dead rows before.
-- Its upper end is a stable function: clock_timestamp() could not end the walk, which would go
-- through every job whose time is still to come.
-- `late`: at or before the mark, from transactions that its snapshot did not see: newer ones, or
-- those that were running then; walks timer_xid. Not bounded by `size`, so that the new mark's
-- snapshot vouches for all of them.
-- Where the clock was set back the mark is ahead of it, and counts as one of now: what is not due
-- yet is looked at again when its time comes.
-- Two entries of a unique job may have the same time, hence WITH TIES. Those that are void are
-- dropped.
-- `seen` is what this snapshot sees of the others' keys, `key` what of it no transaction has locked
-- or changed: where a replacement is under way the job is put off a little, since a staging waits
-- for none.
WITH mark AS MATERIALIZED (
    SELECT seq, least(run_at, statement_timestamp()) AS run_at, id, snapshot,
           run_at > statement_timestamp() AS ahead
    FROM rota.timer_mark ORDER BY seq DESC LIMIT 1
), due AS MATERIALIZED (
    SELECT timer.id, timer.run_at, timer.entry, timer.task, timer.unique_key FROM rota.timer
    WHERE (timer.run_at, timer.id) > ((SELECT run_at FROM mark), (SELECT id FROM mark))
      AND timer.run_at <= statement_timestamp()
    ORDER BY timer.run_at, timer.id FETCH FIRST (%(size)s::int8) ROWS WITH TIES
), late AS MATERIALIZED (
    SELECT timer.id, timer.entry, timer.task, timer.unique_key FROM rota.timer
    WHERE timer.xid >= (SELECT pg_snapshot_xmax(snapshot) FROM mark)
      AND (timer.run_at, timer.id) <= ((SELECT run_at FROM mark), (SELECT id FROM mark))
    UNION ALL
    SELECT timer.id, timer.entry, timer.task, timer.unique_key
    FROM (SELECT pg_snapshot_xip(snapshot) AS xid FROM mark) AS running
    CROSS JOIN LATERAL (
        SELECT timer.id, timer.run_at, timer.entry, timer.task, timer.unique_key FROM rota.timer
        WHERE timer.xid = running.xid ORDER BY timer.xid
    ) AS timer
    WHERE (timer.run_at, timer.id) <= ((SELECT run_at FROM mark), (SELECT id FROM mark))
), seen AS MATERIALIZED (
    SELECT one.id, one.entry, held.key, held.task
    FROM (
        SELECT id, entry, task, unique_key FROM due WHERE unique_key IS NOT NULL
        UNION ALL
        SELECT id, entry, task, unique_key FROM late WHERE unique_key IS NOT NULL
    ) AS one
    JOIN rota.unique_key AS held
      ON held.key = one.unique_key AND held.task = one.task AND held.job = one.id
     AND held.entry = one.entry
), key AS MATERIALIZED (
    SELECT seen.id, seen.entry, held.key, held.task
    FROM seen JOIN rota.unique_key AS held
      ON held.key = seen.key AND held.task = seen.task AND held.job = seen.id
     AND held.entry = seen.entry
    FOR UPDATE OF held SKIP LOCKED
), available AS (
    UPDATE rota.unique_key AS held SET state = 'available' FROM key
    WHERE held.key = key.key AND held.task = key.task AND held.state <> 'available'
), staged AS (
    DELETE FROM rota.timer
    WHERE id = ANY (ARRAY(SELECT id FROM due UNION ALL SELECT id FROM late))
      AND (unique_key IS NULL OR ((id, entry) IN (
            SELECT id, entry FROM due UNION ALL SELECT id, entry FROM late)) IS TRUE)
    RETURNING *
), ready AS MATERIALIZED (
    SELECT * FROM staged
    WHERE unique_key IS NULL OR ((id, entry) IN (SELECT id, entry FROM key)) IS TRUE
), aside AS (
    INSERT INTO rota.timer (id, run_at, enqueued_at, lane, entry, timeout, attempt, max_attempts,
                            state, task, args, errors, unique_key, iteration, last_run, headers)
    SELECT id, clock_timestamp() + interval '0.25 seconds', enqueued_at, lane, entry, timeout, attempt,
           max_attempts, state, task, args, errors, unique_key, iteration, last_run, headers
    FROM staged
    WHERE unique_key IS NOT NULL AND ((id, entry) IN (SELECT id, entry FROM seen)) IS TRUE
      AND ((id, entry) IN (SELECT id, entry FROM key)) IS NOT TRUE
), job AS (
    INSERT INTO rota.log (id, enqueued_at, lane, entry, timeout, segment, attempt, max_attempts,
                          task, args, errors, unique_key, iteration, last_run, headers)
    SELECT id, enqueued_at, lane, entry, timeout, (SELECT last_value %% 4 FROM rota.log_turn),
           attempt, max_attempts, task, args, errors, unique_key, iteration, last_run, headers
    FROM ready ORDER BY run_at, id
    RETURNING id
), counted AS (
    -- What a claim had put aside was available, and is appended a second time.
    INSERT INTO rota.tally (slot, lane, state, jobs)
    SELECT (SELECT last_value %% 2 FROM rota.tally_turn), lane,
           CASE WHEN state = 'available' THEN 'removed' ELSE state END,
           CASE WHEN state = 'available' THEN count(*) ELSE -count(*) END
    FROM ready GROUP BY lane, state
), reached AS (
    SELECT run_at, id FROM due ORDER BY run_at DESC, id DESC LIMIT 1
), marked AS (
    INSERT INTO rota.timer_mark (seq, run_at, id, snapshot)
    SELECT mark.seq + 1, coalesce((SELECT run_at FROM reached), mark.run_at),
           coalesce((SELECT id FROM reached), mark.id), pg_current_snapshot()
    FROM mark
    WHERE EXISTS (SELECT FROM due) OR EXISTS (SELECT FROM late)
       OR mark.ahead
       OR EXISTS (SELECT FROM rota.timer WHERE xid >= (SELECT pg_snapshot_xmax(snapshot) FROM mark))
    RETURNING seq
), forgotten AS (
    -- By its number: under an old snapshot a look for old marks would find the dead ones of a day.
    DELETE FROM rota.timer_mark WHERE seq = (SELECT seq - 10 FROM marked)
)
SELECT count(*) FROM job
