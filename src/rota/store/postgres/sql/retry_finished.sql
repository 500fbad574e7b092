-- Make finished jobs available again, with all their attempts; their errors stay readable. The
-- lanes exist, since the jobs once lay in them. Says so in the tally.
WITH job AS (
    DELETE FROM rota.finished WHERE id = ANY (%(jobs)s::int8[]) AND keep_until > now() RETURNING *
), gone AS (
    INSERT INTO rota.tally (slot, lane, state, expires, jobs)
    SELECT (SELECT last_value %% 2 FROM rota.tally_turn), lane.id, kind.state, kind.keep_until,
           -kind.jobs
    FROM (
        SELECT queue, priority, state, keep_until, count(*) AS jobs FROM job
        GROUP BY queue, priority, state, keep_until
    ) AS kind
    JOIN rota.lane ON lane.queue = kind.queue AND lane.priority = kind.priority AND NOT lane.of_key
)
INSERT INTO rota.log (id, enqueued_at, lane, entry, timeout, segment, attempt, max_attempts, task,
                      args, errors)
SELECT job.id, job.enqueued_at, lane.id, job.entry + 1, job.timeout,
       (SELECT last_value %% 4 FROM rota.log_turn), 0, job.max_attempts, job.task, job.args,
       job.errors
FROM job
CROSS JOIN LATERAL (
    SELECT coalesce(job.lane, (
        SELECT id FROM rota.lane
        WHERE lane.queue = job.queue AND lane.priority = job.priority AND NOT lane.of_key)) AS id
) AS lane
ORDER BY job.id
RETURNING id
