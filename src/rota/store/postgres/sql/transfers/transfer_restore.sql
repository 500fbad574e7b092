-- Give jobs that were stored in this transaction what they had where they come from. Off the normal
-- path: the only statement that updates the log, each row once, and before anybody else can see it.
-- Locks nothing that another transaction could want. Walks: log_job, and timer by its primary key.
WITH was AS MATERIALIZED (
    SELECT * FROM unnest(
        %(jobs)s::int8[], %(attempts)s::int2[], %(timeouts)s::float4[], %(enqueued)s::float8[],
        %(errors)s::text[], %(iterations)s::int4[], %(last_runs)s::float8[], %(headers)s::text[]
    ) AS was (id, attempt, timeout, enqueued_at, errors, iteration, last_run, headers)
), logged AS (
    UPDATE rota.log AS job
    SET attempt = was.attempt, timeout = was.timeout, enqueued_at = to_timestamp(was.enqueued_at),
        errors = was.errors::jsonb, iteration = was.iteration, last_run = to_timestamp(was.last_run),
        headers = was.headers::json
    FROM was WHERE job.id = was.id
)
UPDATE rota.timer AS job
SET attempt = was.attempt, timeout = was.timeout, enqueued_at = to_timestamp(was.enqueued_at),
    errors = was.errors::jsonb, iteration = was.iteration, last_run = to_timestamp(was.last_run),
    headers = was.headers::json
FROM was WHERE job.id = was.id
