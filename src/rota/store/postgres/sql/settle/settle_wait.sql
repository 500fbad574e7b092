-- Move settled jobs into the timer, to be appended to the log again when their time comes.
-- `spent` is 1 where the run used up an attempt; a job that `ran` is no suspect any more. A unique
-- job whose key was free while it ran comes back without it. Reads the newest log entries by
-- log_job, and says in the tally how many.
WITH again AS (
    INSERT INTO rota.timer (id, run_at, enqueued_at, lane, entry, timeout, attempt, max_attempts,
                            state, task, args, errors, unique_key, iteration, last_run, headers)
    SELECT job.id, clock_timestamp() + make_interval(secs => waits.delay), job.enqueued_at, job.lane,
           job.entry + 1, job.timeout, job.attempt + waits.spent, job.max_attempts, waits.state,
           job.task, job.args,
           CASE WHEN waits.error IS NULL AND waits.ran THEN job.errors #- '{-1,suspects}'
                WHEN waits.error IS NULL THEN job.errors
                ELSE coalesce(job.errors, '[]') || waits.error::jsonb END,
           CASE WHEN job.unique_key IS NOT NULL THEN (
               SELECT held.key FROM rota.unique_key AS held
               WHERE held.key = job.unique_key AND held.task = job.task AND held.job = job.id) END,
           job.iteration, job.last_run, job.headers
    FROM unnest(%(jobs)s::int8[], %(states)s::text[], %(delays)s::float8[], %(spents)s::int4[],
                %(errors)s::text[], %(rans)s::bool[]) AS waits (id, state, delay, spent, error, ran)
    CROSS JOIN LATERAL (
        SELECT entry.* FROM rota.log AS entry WHERE entry.id = waits.id
        ORDER BY entry.id DESC, entry.entry DESC LIMIT 1
    ) AS job
    RETURNING lane, state
)
INSERT INTO rota.tally (slot, lane, state, jobs)
SELECT (SELECT last_value %% 2 FROM rota.tally_turn), lane, state, count(*)
FROM again GROUP BY lane, state
