-- Append due jobs to the log in the order of their time, one statement, hence one snapshot. Says in
-- the tally how many left the timer.
-- `due`: past the mark's (run_at, id), walks timer_due from there and never the dead rows before.
-- Its upper end is a stable function: clock_timestamp() could not end the walk, which would go
-- through every job whose time is still to come.
-- `late`: at or before the mark, from transactions that its snapshot did not see: newer ones, or
-- those that were running then; walks timer_xid. Not bounded by `size`, so that the new mark's
-- snapshot vouches for all of them.
WITH mark AS MATERIALIZED (
    SELECT seq, run_at, id, snapshot FROM rota.timer_mark ORDER BY seq DESC LIMIT 1
), due AS MATERIALIZED (
    SELECT timer.id, timer.run_at FROM rota.timer
    WHERE (timer.run_at, timer.id) > ((SELECT run_at FROM mark), (SELECT id FROM mark))
      AND timer.run_at <= statement_timestamp()
    ORDER BY timer.run_at, timer.id LIMIT %(size)s::int8
), late AS MATERIALIZED (
    SELECT timer.id FROM rota.timer
    WHERE timer.xid >= (SELECT pg_snapshot_xmax(snapshot) FROM mark)
      AND (timer.run_at, timer.id) <= ((SELECT run_at FROM mark), (SELECT id FROM mark))
    UNION ALL
    SELECT timer.id
    FROM (SELECT pg_snapshot_xip(snapshot) AS xid FROM mark) AS running
    CROSS JOIN LATERAL (
        SELECT timer.id, timer.run_at FROM rota.timer
        WHERE timer.xid = running.xid ORDER BY timer.xid
    ) AS timer
    WHERE (timer.run_at, timer.id) <= ((SELECT run_at FROM mark), (SELECT id FROM mark))
), staged AS (
    DELETE FROM rota.timer
    WHERE id = ANY (ARRAY(SELECT id FROM due UNION ALL SELECT id FROM late))
    RETURNING *
), job AS (
    INSERT INTO rota.log (id, enqueued_at, lane, entry, timeout, segment, attempt, max_attempts,
                          task, args, errors)
    SELECT id, enqueued_at, lane, entry, timeout, (SELECT last_value %% 4 FROM rota.log_turn),
           attempt, max_attempts, task, args, errors
    FROM staged ORDER BY run_at, id
    RETURNING id
), counted AS (
    INSERT INTO rota.tally (slot, lane, state, jobs)
    SELECT (SELECT last_value %% 2 FROM rota.tally_turn), lane, state, -count(*)
    FROM staged GROUP BY lane, state
), reached AS (
    SELECT run_at, id FROM due ORDER BY run_at DESC, id DESC LIMIT 1
), marked AS (
    INSERT INTO rota.timer_mark (seq, run_at, id, snapshot)
    SELECT mark.seq + 1, coalesce((SELECT run_at FROM reached), mark.run_at),
           coalesce((SELECT id FROM reached), mark.id), pg_current_snapshot()
    FROM mark
    WHERE EXISTS (SELECT FROM due) OR EXISTS (SELECT FROM late)
       OR EXISTS (SELECT FROM rota.timer WHERE xid >= (SELECT pg_snapshot_xmax(snapshot) FROM mark))
)
SELECT count(*) FROM job
