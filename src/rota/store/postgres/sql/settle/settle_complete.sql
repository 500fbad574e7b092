-- Move completed jobs without results, of one retention, into the finished ones: settle_finish.sql
-- for the common case. The jobs come as ranges of ids, since the ids of a lease nearly always
-- follow one another: one walk of log_job over each range, to each job's newest entry. Says in the
-- tally how many.
-- `until` is rounded up to a multiple of 1/32 of the retention: many jobs then expire together, and
-- their totals need no row for every moment. See docs/how/engine.md, Counting.
WITH kept AS MATERIALIZED (
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
    FROM kept, unnest(%(firsts)s::text::int8[], %(lasts)s::text::int8[]) AS done (first, last)
    CROSS JOIN LATERAL (
        SELECT DISTINCT ON (entry.id) entry.* FROM rota.log AS entry
        WHERE entry.id BETWEEN done.first AND done.last
        ORDER BY entry.id DESC, entry.entry DESC
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
