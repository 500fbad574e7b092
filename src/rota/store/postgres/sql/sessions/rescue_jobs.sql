-- Decide what becomes of rescued jobs. Their worker's death is noted with how many `suspects` it
-- leaves; `spent` is 1 where the attempt is. Jobs with a request to cancel are cancelled, those
-- without another attempt are discarded, the others are appended to the log again. Gives each job
-- with its new state, its key, and the node of a flow that it has ended for, and says in the tally
-- how many ended.
-- `keep_until` of cancelled jobs is a day, rounded up to 45 minutes as in settle_complete.sql; that
-- of discarded ones is what `keeps` says of their `queues`, else they stay for ever.
WITH job AS MATERIALIZED (
    SELECT entry.*, coalesce(entry.errors, '[]') || jsonb_build_object(
               'attempt', entry.attempt + 1, 'at', now(), 'exception', 'rota.WorkerDied',
               'message', %(message)s::text, 'traceback', '', 'suspects', %(suspects)s::int4) AS noted,
           attempt + %(spent)s::int4 AS attempts,
           EXISTS (SELECT FROM rota.cancel_request AS request WHERE request.job = taken.id) AS unwanted
    FROM unnest(%(jobs)s::int8[]) AS taken (id)
    CROSS JOIN LATERAL (
        SELECT entry.* FROM rota.log AS entry WHERE entry.id = taken.id
        ORDER BY entry.id DESC, entry.entry DESC LIMIT 1
    ) AS entry
), back AS (
    INSERT INTO rota.log (id, enqueued_at, lane, entry, timeout, segment, attempt, max_attempts,
                          task, args, errors, unique_key, iteration, last_run, headers)
    SELECT id, enqueued_at, lane, entry + 1, timeout, (SELECT last_value %% 4 FROM rota.log_turn),
           attempts, max_attempts, task, args, noted,
           CASE WHEN job.unique_key IS NOT NULL THEN (
               SELECT held.key FROM rota.unique_key AS held
               WHERE held.key = job.unique_key AND held.task = job.task AND held.job = job.id) END,
           iteration, last_run, headers
    FROM job WHERE NOT unwanted AND attempts < max_attempts
    ORDER BY xid, id
    RETURNING id, unique_key
), ended AS (
    INSERT INTO rota.finished (lane, id, enqueued_at, keep_until, timeout, segment, priority, entry,
                               attempt, max_attempts, state, queue, task, args, errors,
                               unique_key, iteration, last_run, headers)
    SELECT CASE WHEN lane.of_key THEN lane.id END, job.id, job.enqueued_at,
           CASE WHEN unwanted THEN date_bin('45 minutes', now() + interval '1 day 45 minutes', 'epoch')
                ELSE coalesce(date_bin(step, now() + make_interval(secs => kept.seconds) + step,
                                       'epoch'), 'infinity') END, job.timeout,
           CASE WHEN unwanted THEN (SELECT last_value %% 6 FROM rota.finished_turn) ELSE -1 END,
           lane.priority, job.entry, job.attempt + 1, job.max_attempts,
           CASE WHEN unwanted THEN 'cancelled' ELSE 'discarded' END, lane.queue, job.task, job.args,
           noted,
           CASE WHEN job.unique_key IS NOT NULL THEN (
               SELECT held.key FROM rota.unique_key AS held
               WHERE held.key = job.unique_key AND held.task = job.task AND held.job = job.id) END,
           job.iteration, job.last_run, job.headers
    FROM job JOIN rota.lane ON lane.id = job.lane
    LEFT JOIN unnest(%(queues)s::text[], %(keeps)s::float8[]) AS kept (queue, seconds)
        ON kept.queue = lane.queue
    CROSS JOIN LATERAL make_interval(secs => greatest(kept.seconds / 32, 0.001)) AS step
    WHERE unwanted OR job.attempts >= job.max_attempts
    RETURNING id, queue, priority, state, keep_until, unique_key, headers
), counted AS (
    INSERT INTO rota.tally (slot, lane, state, expires, jobs)
    SELECT (SELECT last_value %% 2 FROM rota.tally_turn), lane.id, kind.state, kind.keep_until,
           kind.jobs
    FROM (
        SELECT queue, priority, state, keep_until, count(*) AS jobs FROM ended
        GROUP BY queue, priority, state, keep_until
    ) AS kind
    JOIN rota.lane ON lane.queue = kind.queue AND lane.priority = kind.priority AND NOT lane.of_key
)
SELECT id, 'available', unique_key, NULL FROM back
UNION ALL
SELECT id, state, unique_key, headers ->> 'rota.node' FROM ended
