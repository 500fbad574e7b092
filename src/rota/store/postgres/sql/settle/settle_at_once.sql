-- settle_whole.sql and settle_complete.sql in one statement, for the everyday case: all jobs of one
-- lease have completed, without results, with one retention. So it needs no transaction around it,
-- and one round trip.
-- No row: nothing was settled, and the statements for all cases decide. It notifies the processes
-- that wait itself.
-- The texts are the same as there, and as in ended.sql.
WITH freed AS (
    DELETE FROM rota.lease
    WHERE id = %(lease)s::int8 AND session = %(session)s::int8 AND jobs = %(jobs)s::text::int8[]
      AND NOT EXISTS (SELECT FROM rota.cancel_request)
    RETURNING id, lane, CASE WHEN pg_try_advisory_lock(7682007, 0)
                             THEN pg_advisory_unlock(7682007, 0) IS NULL ELSE true END AS waited
), kept AS MATERIALIZED (
    SELECT date_bin(step, now() + make_interval(secs => %(keep)s::float8) + step, 'epoch') AS until
    FROM make_interval(secs => greatest(%(keep)s::float8 / 32, 0.001)) AS step
), ended AS (
    INSERT INTO rota.finished (lane, id, enqueued_at, keep_until, timeout, segment, priority, entry, attempt,
                               max_attempts, state, queue, task, args, errors,
                               unique_key, iteration, last_run, headers)
    SELECT CASE WHEN lane.of_key THEN lane.id END, job.id, job.enqueued_at, kept.until, job.timeout,
           (SELECT last_value %% 6 FROM rota.finished_turn), lane.priority, job.entry, job.attempt + 1,
           job.max_attempts, 'completed', lane.queue, job.task, job.args, job.errors,
           CASE WHEN job.unique_key IS NOT NULL THEN (
               SELECT held.key FROM rota.unique_key AS held
               WHERE held.key = job.unique_key AND held.task = job.task AND held.job = job.id) END,
           job.iteration, job.last_run, job.headers
    FROM freed, kept, unnest(%(firsts)s::text::int8[], %(lasts)s::text::int8[]) AS done (first, last)
    CROSS JOIN LATERAL (
        SELECT DISTINCT ON (entry.id) entry.* FROM rota.log AS entry
        WHERE entry.id BETWEEN done.first AND done.last
        ORDER BY entry.id DESC, entry.entry DESC
    ) AS job
    JOIN rota.lane ON lane.id = job.lane
    RETURNING queue, priority, state, keep_until
), counted AS (
    INSERT INTO rota.tally (slot, lane, state, expires, jobs)
    SELECT (SELECT last_value %% 2 FROM rota.tally_turn), lane.id, kind.state, kind.keep_until, kind.jobs
    FROM (
        SELECT queue, priority, state, keep_until, count(*) AS jobs FROM ended
        GROUP BY queue, priority, state, keep_until
    ) AS kind
    JOIN rota.lane ON lane.queue = kind.queue AND lane.priority = kind.priority AND NOT lane.of_key
)
SELECT CASE WHEN waited THEN (SELECT count(pg_notify('rota_ended', part)) FROM unnest(%(parts)s::text[]) AS part) END
FROM freed
