-- Let finished jobs wait for other jobs again, with all their attempts; retry_finished.sql for
-- nodes that are not released.
-- They come back without their unique keys. Gives job, node, and the state in which each was.
WITH job AS (
    DELETE FROM rota.finished WHERE id = ANY (%(jobs)s::int8[]) AND keep_until > now()
    RETURNING *
), gone AS (
    INSERT INTO rota.tally (slot, lane, state, expires, jobs)
    SELECT (SELECT last_value %% 2 FROM rota.tally_turn), lane.id, kind.state, kind.keep_until, -kind.jobs
    FROM (
        SELECT queue, priority, state, keep_until, count(*) AS jobs FROM job
        GROUP BY queue, priority, state, keep_until
    ) AS kind
    JOIN rota.lane ON lane.queue = kind.queue AND lane.priority = kind.priority AND NOT lane.of_key
), again AS (
    INSERT INTO rota.timer (id, run_at, enqueued_at, lane, entry, timeout, max_attempts, task, args, errors, iteration,
                            last_run, headers)
    SELECT job.id, clock_timestamp() + make_interval(secs => %(waiting)s::float8), job.enqueued_at, lane.id, job.entry + 1,
           job.timeout, job.max_attempts, job.task, job.args, job.errors, job.iteration, job.last_run, job.headers
    FROM job
    CROSS JOIN LATERAL (
        SELECT coalesce(job.lane, (
            SELECT id FROM rota.lane
            WHERE lane.queue = job.queue AND lane.priority = job.priority AND NOT lane.of_key)) AS id
    ) AS lane
    ORDER BY job.id
    RETURNING lane
), counted AS (
    INSERT INTO rota.tally (slot, lane, state, jobs)
    SELECT (SELECT last_value %% 2 FROM rota.tally_turn), lane, 'scheduled', count(*)
    FROM again GROUP BY lane
)
SELECT id, headers ->> 'rota.node', state FROM job
