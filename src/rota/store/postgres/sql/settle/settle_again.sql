-- settle_wait.sql for rounds that ended well: the job comes round again after `delay` seconds or at
-- a time, with all its attempts, and its iterations are counted. Errors of this round are
-- forgotten.
WITH again AS (
    INSERT INTO rota.timer (id, run_at, enqueued_at, lane, entry, timeout, attempt, max_attempts,
                            state, task, args, unique_key, iteration, last_run, headers)
    SELECT job.id,
           coalesce(rounds.at, clock_timestamp() + make_interval(secs => rounds.delay)),
           job.enqueued_at, job.lane, job.entry + 1, job.timeout, 0, job.max_attempts, 'scheduled',
           job.task, job.args,
           CASE WHEN job.unique_key IS NOT NULL THEN (
               SELECT held.key FROM rota.unique_key AS held
               WHERE held.key = job.unique_key AND held.task = job.task AND held.job = job.id) END,
           coalesce(job.iteration, 0) + 1, now(), job.headers
    FROM unnest(%(jobs)s::int8[], %(delays)s::float8[], %(ats)s::timestamptz[]) AS rounds (id, delay, at)
    CROSS JOIN LATERAL (
        SELECT entry.* FROM rota.log AS entry WHERE entry.id = rounds.id
        ORDER BY entry.id DESC, entry.entry DESC LIMIT 1
    ) AS job
    RETURNING lane
)
INSERT INTO rota.tally (slot, lane, state, jobs)
SELECT (SELECT last_value %% 2 FROM rota.tally_turn), lane, 'scheduled', count(*)
FROM again GROUP BY lane
