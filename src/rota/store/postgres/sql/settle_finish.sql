-- Move settled jobs into the finished ones. Reads each job's newest log entry by log_job.
INSERT INTO rota.finished (id, enqueued_at, keep_until, timeout, segment, priority, entry, attempt,
                           max_attempts, state, queue, task, args, result, errors)
SELECT job.id, job.enqueued_at,
       CASE WHEN ended.state = 'discarded' THEN 'infinity'
            ELSE now() + make_interval(secs => ended.keep) END,
       job.timeout,
       CASE WHEN ended.state = 'discarded' THEN -1
            ELSE (SELECT last_value %% 6 FROM rota.finished_turn) END,
       lane.priority, job.entry, job.attempt + 1, job.max_attempts,
       ended.state, lane.queue, job.task, job.args, ended.result::json,
       CASE WHEN ended.error IS NULL THEN job.errors
            ELSE coalesce(job.errors, '[]') || ended.error::jsonb END
FROM unnest(%(jobs)s::int8[], %(states)s::text[], %(keeps)s::float8[], %(results)s::text[],
            %(errors)s::text[]) AS ended (id, state, keep, result, error)
CROSS JOIN LATERAL (
    SELECT entry.* FROM rota.log AS entry WHERE entry.id = ended.id
    ORDER BY entry.id DESC, entry.entry DESC LIMIT 1
) AS job
JOIN rota.lane ON lane.id = job.lane
