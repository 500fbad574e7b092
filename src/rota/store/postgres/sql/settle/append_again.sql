-- Append jobs that were leased to the log once more, in the order given, without spending an
-- attempt: a release. They queue up behind the jobs that are there now. A unique job whose key was
-- free while it ran comes back without it.
INSERT INTO rota.log (id, enqueued_at, lane, entry, timeout, segment, attempt, max_attempts, task,
                      args, errors, unique_key, iteration, last_run, headers)
SELECT job.id, job.enqueued_at, job.lane, job.entry + 1, job.timeout,
       (SELECT last_value %% 4 FROM rota.log_turn), job.attempt, job.max_attempts, job.task,
       job.args, job.errors,
       CASE WHEN job.unique_key IS NOT NULL THEN (
           SELECT held.key FROM rota.unique_key AS held
           WHERE held.key = job.unique_key AND held.task = job.task AND held.job = job.id) END,
       job.iteration, job.last_run, job.headers
FROM unnest(%(jobs)s::int8[]) AS back (id)
CROSS JOIN LATERAL (
    SELECT entry.* FROM rota.log AS entry WHERE entry.id = back.id
    ORDER BY entry.id DESC, entry.entry DESC LIMIT 1
) AS job
