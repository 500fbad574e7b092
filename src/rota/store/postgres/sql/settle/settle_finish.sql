-- Move settled jobs into the finished ones. Reads each job's newest log entry by log_job, and says
-- in the tally how many. Retentions are rounded up as in settle_complete.sql; null means for ever.
-- A unique job that lost its key when it started finishes without one, and comes back without one.
WITH ended AS (
    INSERT INTO rota.finished (lane, id, enqueued_at, keep_until, timeout, segment, priority, entry, attempt,
                               max_attempts, state, queue, task, args, result, errors,
                               unique_key, iteration, last_run, headers)
    SELECT CASE WHEN lane.of_key THEN lane.id END, job.id, job.enqueued_at,
           coalesce(date_bin(step, now() + make_interval(secs => done.keep) + step, 'epoch'),
                    'infinity'),
           job.timeout,
           CASE WHEN done.state = 'discarded' THEN -1
                ELSE (SELECT last_value %% 6 FROM rota.finished_turn) END,
           lane.priority, job.entry, job.attempt + 1, job.max_attempts,
           done.state, lane.queue, job.task, job.args, done.result::json,
           CASE WHEN done.error IS NULL THEN job.errors
                ELSE coalesce(job.errors, '[]') || done.error::jsonb END,
           CASE WHEN job.unique_key IS NOT NULL THEN (
               SELECT held.key FROM rota.unique_key AS held
               WHERE held.key = job.unique_key AND held.task = job.task AND held.job = job.id) END,
           job.iteration, job.last_run, job.headers
    FROM unnest(%(jobs)s::int8[], %(states)s::text[], %(keeps)s::float8[], %(results)s::text[],
                %(errors)s::text[]) AS done (id, state, keep, result, error)
    CROSS JOIN LATERAL make_interval(secs => greatest(done.keep / 32, 0.001)) AS step
    CROSS JOIN LATERAL (
        SELECT entry.* FROM rota.log AS entry WHERE entry.id = done.id
        ORDER BY entry.id DESC, entry.entry DESC LIMIT 1
    ) AS job
    JOIN rota.lane ON lane.id = job.lane
    RETURNING queue, priority, state, keep_until
)
INSERT INTO rota.tally (slot, lane, state, expires, jobs)
SELECT (SELECT last_value %% 2 FROM rota.tally_turn), lane.id, kind.state, kind.keep_until, kind.jobs
FROM (
    SELECT queue, priority, state, keep_until, count(*) AS jobs FROM ended
    GROUP BY queue, priority, state, keep_until
) AS kind
JOIN rota.lane ON lane.queue = kind.queue AND lane.priority = kind.priority AND NOT lane.of_key
