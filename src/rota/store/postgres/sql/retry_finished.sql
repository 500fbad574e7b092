-- Make finished jobs available again, with all their attempts; their errors stay readable. The
-- lanes exist, since the jobs once lay in them.
WITH job AS (
    DELETE FROM rota.finished WHERE id = ANY (%(jobs)s::int8[]) AND keep_until > now() RETURNING *
)
INSERT INTO rota.log (id, enqueued_at, lane, entry, timeout, segment, attempt, max_attempts, task,
                      args, errors)
SELECT job.id, job.enqueued_at, lane.id, job.entry + 1, job.timeout,
       (SELECT last_value %% 4 FROM rota.log_turn), 0, job.max_attempts, job.task, job.args,
       job.errors
FROM job JOIN rota.lane ON lane.queue = job.queue AND lane.priority = job.priority
ORDER BY job.id
RETURNING id
