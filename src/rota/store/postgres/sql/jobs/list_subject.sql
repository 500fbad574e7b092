-- Jobs that hold a unique key and have not ended, of the keys from `first` to `last`, newest first;
-- a null filter means any; args that are hidden are not looked into. Locks nothing. Walks
-- unique_key's primary key over these keys, then each job by its id, the newest first, until there
-- are enough: without OFFSET 0 the planner may read all jobs instead.
-- A time that Python cannot hold, in any time zone, is shown as the last or the first that Python
-- can.
-- `brief`: without args, result and headers, and with the end of the last error alone.
SELECT job.id, job.task, CASE WHEN %(brief)s::bool THEN '{}' ELSE job.args::text END, job.queue, job.priority, job.state, job.attempt,
       job.max_attempts, job.timeout, job.enqueued_at,
       CASE WHEN job.scheduled_at IS NOT NULL
            THEN greatest(least(job.scheduled_at, '9999-12-30 00:00+00'), '0001-01-02 00:00+00') END,
       job.finished_at, CASE WHEN NOT %(brief)s::bool THEN job.result::text END, CASE WHEN %(brief)s::bool AND job.errors IS NOT NULL
            THEN (SELECT '[' || jsonb_build_object(
                             'attempt', last -> 'attempt', 'at', last -> 'at', 'exception', last -> 'exception',
                             'message', left(last ->> 'message', 300),
                             'traceback', right(last ->> 'traceback', 2000))::text || ']'
                  FROM (SELECT job.errors -> -1 AS last OFFSET 0) AS error)
            WHEN NOT %(brief)s::bool THEN job.errors::text END, job.worker,
       EXISTS (SELECT FROM rota.cancel_request AS request WHERE request.job = job.id),
       job.unique_key, job.iteration, job.last_run, CASE WHEN NOT %(brief)s::bool THEN job.headers::text END
FROM (
    SELECT held.job FROM rota.unique_key AS held
    WHERE held.key >= %(first)s AND held.key <= %(last)s AND held.state <> 'ended'
      AND held.job >= %(since)s::int8 AND held.job <= %(until)s::int8
      AND (%(state)s::text IS NULL OR held.state = %(state)s)
      AND (%(queue)s::text IS NULL
        OR (SELECT lane.queue FROM rota.lane WHERE lane.id = held.lane) = %(queue)s)
      AND (%(task)s::text IS NULL OR held.task = %(task)s)
    ORDER BY held.job DESC
) AS held
CROSS JOIN LATERAL (SELECT * FROM rota.job WHERE job.id = held.job OFFSET 0) AS job
WHERE job.state NOT IN ('completed', 'discarded', 'cancelled')
  AND (%(path)s::text[] IS NULL OR (pg_column_size(job.args) <= 16384 AND job.args #>> %(path)s::text[] = %(value)s
      AND coalesce((%(path)s::text[])[1] <> ALL (string_to_array(job.headers ->> 'rota.redact', ',')), true)))
ORDER BY held.job DESC LIMIT %(size)s::int8
