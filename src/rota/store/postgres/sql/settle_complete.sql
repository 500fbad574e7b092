-- Move completed jobs without results, of one retention, into the finished ones: settle_finish.sql
-- for the common case. Reads each job's newest log entry by log_job.
INSERT INTO rota.finished (id, enqueued_at, keep_until, timeout, segment, priority, entry, attempt,
                           max_attempts, state, queue, task, args, errors)
SELECT job.id, job.enqueued_at, now() + make_interval(secs => %(keep)s::float8), job.timeout,
       (SELECT last_value %% 6 FROM rota.finished_turn), lane.priority, job.entry, job.attempt + 1,
       job.max_attempts, 'completed', lane.queue, job.task, job.args, job.errors
FROM unnest(%(jobs)s::int8[]) AS ended (id)
CROSS JOIN LATERAL (
    SELECT entry.* FROM rota.log AS entry WHERE entry.id = ended.id
    ORDER BY entry.id DESC, entry.entry DESC LIMIT 1
) AS job
JOIN rota.lane ON lane.id = job.lane
