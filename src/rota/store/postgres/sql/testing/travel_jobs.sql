-- Set back the times of these jobs of this transaction, wherever they are, and of their keys. Locks
-- rows of this transaction's own alone. Walks log_job, timer's primary key, finished_job, and
-- timer_xid's like for keys.
WITH logged AS (
    UPDATE rota.log SET enqueued_at = enqueued_at - make_interval(secs => %(seconds)s::float8),
                        last_run = last_run - make_interval(secs => %(seconds)s::float8)
    WHERE id = ANY (%(jobs)s::int8[])
), waiting AS (
    UPDATE rota.timer SET enqueued_at = enqueued_at - make_interval(secs => %(seconds)s::float8),
                          run_at = run_at - make_interval(secs => %(seconds)s::float8),
                          last_run = last_run - make_interval(secs => %(seconds)s::float8)
    WHERE id = ANY (%(jobs)s::int8[])
), ended AS (
    UPDATE rota.finished SET enqueued_at = enqueued_at - make_interval(secs => %(seconds)s::float8),
                             finished_at = finished_at - make_interval(secs => %(seconds)s::float8),
                             keep_until = keep_until - make_interval(secs => %(seconds)s::float8),
                             last_run = last_run - make_interval(secs => %(seconds)s::float8)
    WHERE id = ANY (%(jobs)s::int8[])
)
UPDATE rota.unique_key SET first_at = first_at - make_interval(secs => %(seconds)s::float8),
                           until = until - make_interval(secs => %(seconds)s::float8),
                           last_run = last_run - make_interval(secs => %(seconds)s::float8)
WHERE job = ANY (%(jobs)s::int8[]) AND xid = pg_current_xact_id()
