-- Jobs in a lease, newest first; a null filter means any; args that are hidden, or long, are not
-- looked into. Locks nothing. Walks all leases for the ids, which are few, then log_job for each
-- job, the newest first, until there are enough. LIMIT 1 keeps the planner from reading all lanes
-- for each job.
-- `brief`: without args, result and headers, and with the end of the last error alone.
SELECT held.id, job.task, CASE WHEN %(brief)s::bool THEN '{}' ELSE job.args::text END, lane.queue, lane.priority, 'running', (job.attempt + 1)::smallint,
       job.max_attempts, job.timeout, job.enqueued_at, NULL::timestamptz, NULL::timestamptz, NULL::text,
       CASE WHEN %(brief)s::bool AND job.errors IS NOT NULL
            THEN (SELECT '[' || jsonb_build_object(
                             'attempt', last -> 'attempt', 'at', last -> 'at', 'exception', last -> 'exception',
                             'message', left(last ->> 'message', 300),
                             'traceback', right(last ->> 'traceback', 2000))::text || ']'
                  FROM (SELECT job.errors -> -1 AS last OFFSET 0) AS error)
            WHEN NOT %(brief)s::bool THEN job.errors::text END, session.host || ':' || session.pid,
       EXISTS (SELECT FROM rota.cancel_request AS request WHERE request.job = held.id),
       job.unique_key, job.iteration, job.last_run, CASE WHEN NOT %(brief)s::bool THEN job.headers::text END
FROM (
    SELECT one.id, lease.session FROM rota.lease CROSS JOIN LATERAL unnest(lease.jobs) AS one (id)
    WHERE one.id >= %(since)s::int8 AND one.id <= %(until)s::int8
    ORDER BY one.id DESC
) AS held
CROSS JOIN LATERAL (
    SELECT entry.* FROM rota.log AS entry WHERE entry.id = held.id
    ORDER BY entry.id DESC, entry.entry DESC LIMIT 1
) AS job
CROSS JOIN LATERAL (SELECT queue, priority FROM rota.lane WHERE lane.id = job.lane LIMIT 1) AS lane
CROSS JOIN LATERAL (SELECT host, pid FROM rota.session WHERE session.id = held.session LIMIT 1) AS session
WHERE (%(queue)s::text IS NULL OR lane.queue = %(queue)s)
  AND (%(task)s::text IS NULL OR job.task = %(task)s)
  AND (%(path)s::text[] IS NULL OR (pg_column_size(job.args) <= 16384 AND job.args #>> %(path)s::text[] = %(value)s
      AND coalesce((%(path)s::text[])[1] <> ALL (string_to_array(job.headers ->> 'rota.redact', ',')), true)))
  AND (%(first)s::text IS NULL OR (job.unique_key COLLATE "C" BETWEEN %(first)s AND %(last)s AND EXISTS (
      SELECT FROM rota.unique_key AS owned
      WHERE owned.key = job.unique_key AND owned.task = job.task AND owned.job = held.id AND owned.state <> 'ended')))
ORDER BY held.id DESC LIMIT %(size)s::int8
