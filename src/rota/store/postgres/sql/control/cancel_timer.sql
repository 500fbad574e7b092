-- Cancel jobs that wait for their time, and say so in the tally. The rows' locks decide against a
-- stager. `keep_until` as in available_cancel.sql.
-- Void entries stay. One that a claim has put aside counts as available, see claim.sql.
-- `only`: if they are in this state.
WITH job AS (
    DELETE FROM rota.timer
    WHERE id = ANY (%(jobs)s::int8[]) AND (%(only)s::text IS NULL OR state = %(only)s)
      AND (timer.unique_key IS NULL OR coalesce((
        SELECT true FROM rota.unique_key AS held
        WHERE held.key = timer.unique_key AND held.task = timer.task AND held.job = timer.id
          AND held.entry = timer.entry), false))
    RETURNING *
), gone AS (
    INSERT INTO rota.tally (slot, lane, state, jobs)
    SELECT (SELECT last_value %% 2 FROM rota.tally_turn), lane,
           CASE WHEN state = 'available' THEN 'removed' ELSE state END,
           CASE WHEN state = 'available' THEN count(*) ELSE -count(*) END
    FROM job GROUP BY lane, state
), ended AS (
    INSERT INTO rota.finished (lane, id, enqueued_at, keep_until, timeout, segment, priority, entry,
                               attempt, max_attempts, state, queue, task, args, errors,
                               unique_key, while_waiting, iteration, last_run, headers)
    SELECT CASE WHEN lane.of_key THEN lane.id END, job.id, job.enqueued_at, date_bin(step, now() + make_interval(secs => kept.seconds) + step, 'epoch'),
           job.timeout, (SELECT last_value %% 6 FROM rota.finished_turn), lane.priority, job.entry,
           job.attempt, job.max_attempts, 'cancelled', lane.queue, job.task, job.args, job.errors,
           job.unique_key, CASE WHEN job.unique_key IS NOT NULL THEN (
               SELECT true FROM rota.unique_key AS held
               WHERE held.key = job.unique_key AND held.task = job.task AND held.job = job.id
                 AND held.while_waiting) END,
           job.iteration, job.last_run, job.headers
    FROM job JOIN rota.lane ON lane.id = job.lane
    LEFT JOIN rota.queue_setting AS said ON said.queue = lane.queue
    LEFT JOIN unnest(%(queues)s::text[], %(keeps)s::float8[]) AS declared (queue, seconds)
        ON declared.queue = lane.queue
    CROSS JOIN LATERAL (
        SELECT greatest(coalesce(said.cancelled, declared.seconds, 86400), 60) AS seconds
    ) AS kept
    CROSS JOIN LATERAL make_interval(secs => kept.seconds / 32) AS step
    RETURNING id, queue, priority, keep_until, unique_key, headers
), counted AS (
    INSERT INTO rota.tally (slot, lane, state, expires, jobs)
    SELECT (SELECT last_value %% 2 FROM rota.tally_turn), lane.id, 'cancelled', kind.keep_until,
           kind.jobs
    FROM (
        SELECT queue, priority, keep_until, count(*) AS jobs FROM ended
        GROUP BY queue, priority, keep_until
    ) AS kind
    JOIN rota.lane ON lane.queue = kind.queue AND lane.priority = kind.priority AND NOT lane.of_key
)
SELECT id, unique_key, headers ->> 'rota.node' FROM ended
