-- Append waiting jobs of this transaction to the log, in the order of their times; which these are.
-- Says in the tally how many left the timer. Locks rows of this transaction's own alone, and moves
-- no mark.
-- Jobs that wait for others stay. Walks timer_xid. Void entries of unique jobs are dropped.
WITH due AS MATERIALIZED (
    SELECT timer.id, timer.entry, (timer.unique_key IS NULL OR EXISTS (
               SELECT FROM rota.unique_key AS held
               WHERE held.key = timer.unique_key AND held.task = timer.task AND held.job = timer.id
                 AND held.entry = timer.entry)) AS counts
    FROM rota.timer
    JOIN rota.lane ON lane.id = timer.lane
    WHERE timer.xid = pg_current_xact_id()
      AND (NOT %(due)s::bool OR timer.run_at <= clock_timestamp())
      AND NOT (timer.headers ->> 'rota.node' IS NOT NULL AND timer.run_at > now() + interval '50 years')
      AND (%(jobs)s::int8[] IS NULL OR timer.id = ANY (%(jobs)s::int8[]))
      AND timer.id <> ALL (%(but)s::int8[])
      AND (%(task)s::text IS NULL OR timer.task = %(task)s::text)
      AND (%(queues)s::text[] IS NULL OR lane.queue = ANY (%(queues)s::text[]))
), staged AS (
    DELETE FROM rota.timer USING due
    WHERE timer.id = due.id AND timer.entry = due.entry
    RETURNING timer.*, due.counts
), available AS (
    UPDATE rota.unique_key AS held SET state = 'available' FROM staged
    WHERE staged.counts AND held.key = staged.unique_key AND held.task = staged.task
      AND held.job = staged.id
), counted AS (
    INSERT INTO rota.tally (slot, lane, state, jobs)
    SELECT (SELECT last_value %% 2 FROM rota.tally_turn), lane, state, -count(*)
    FROM staged WHERE counts GROUP BY lane, state
)
INSERT INTO rota.log (id, enqueued_at, lane, entry, timeout, segment, attempt, max_attempts, task, args,
                      errors, unique_key, iteration, last_run, headers)
SELECT id, enqueued_at, lane, entry, timeout, (SELECT last_value %% 4 FROM rota.log_turn), attempt,
       max_attempts, task, args, errors, unique_key, iteration, last_run, headers
FROM staged WHERE counts ORDER BY run_at, id
RETURNING id
