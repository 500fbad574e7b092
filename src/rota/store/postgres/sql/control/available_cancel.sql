-- Cancel available jobs: the one case, with available_delete.sql, in which rows of the log are
-- deleted. Their `lanes` are locked, so no claim can hand them out meanwhile; a job that has come
-- into another lane since these were locked is left alone, and so are void entries. The rows of the
-- tally stand for those of the log, whether a mark has counted them or not.
-- `keep_until` is what is set for the queue, else what `keeps` says of `queues`, else a day; a
-- minute at the least, so that the user who cancels can see the job; rounded up as in
-- settle_complete.sql.
WITH waiting AS MATERIALIZED (
    SELECT entry.segment, entry.ctid AS place
    FROM rota.log AS entry
    CROSS JOIN LATERAL (
        SELECT * FROM rota.lane_place WHERE lane_place.lane = entry.lane LIMIT 1
    ) AS place
    WHERE entry.id = ANY (%(jobs)s::int8[]) AND entry.lane = ANY (%(lanes)s::int4[])
      AND ((entry.xid, entry.id) > (place.xid, place.id)
        OR entry.id > place.hole_ids[array_position(place.hole_xids, entry.xid)])
      AND (entry.unique_key IS NULL OR coalesce((
        SELECT true FROM rota.unique_key AS held
        WHERE held.key = entry.unique_key AND held.task = entry.task AND held.job = entry.id
          AND held.entry = entry.entry), false))
), job AS (
    DELETE FROM rota.log AS job USING waiting
    WHERE job.segment = waiting.segment AND job.ctid = waiting.place
    RETURNING job.*
), removed AS (
    INSERT INTO rota.tally (slot, lane, state, jobs, appended_by)
    SELECT (SELECT last_value %% 2 FROM rota.tally_turn), lane, 'removed', count(*), NULL
    FROM job GROUP BY lane
    UNION ALL
    SELECT (SELECT last_value %% 2 FROM rota.tally_turn), lane, 'appended', count(*), xid
    FROM job GROUP BY lane, xid
), ended AS (
    INSERT INTO rota.finished (lane, id, enqueued_at, keep_until, timeout, segment, priority, entry,
                               attempt, max_attempts, state, queue, task, args, errors,
                               unique_key, while_waiting, iteration, last_run, headers)
    SELECT CASE WHEN lane.of_key THEN lane.id END, job.id, job.enqueued_at, date_bin(step, now() + make_interval(secs => kept.seconds) + step, 'epoch'),
           job.timeout, (SELECT last_value %% 6 FROM rota.finished_turn), lane.priority, job.entry,
           job.attempt, job.max_attempts, 'cancelled', lane.queue, job.task, job.args, job.errors,
           job.unique_key, CASE WHEN job.unique_key IS NOT NULL THEN (
               SELECT true FROM rota.unique_key AS held
               WHERE held.key = job.unique_key AND held.task = job.task AND held.job = job.id
                 AND held.while_waiting) END,
           job.iteration, job.last_run, job.headers
    FROM job JOIN rota.lane ON lane.id = job.lane
    LEFT JOIN rota.queue_setting AS said ON said.queue = lane.queue
    LEFT JOIN unnest(%(queues)s::text[], %(keeps)s::float8[]) AS declared (queue, seconds)
        ON declared.queue = lane.queue
    CROSS JOIN LATERAL (
        SELECT greatest(coalesce(said.cancelled, declared.seconds, 86400), 60) AS seconds
    ) AS kept
    CROSS JOIN LATERAL make_interval(secs => kept.seconds / 32) AS step
    RETURNING id, queue, priority, keep_until, unique_key, headers
), counted AS (
    INSERT INTO rota.tally (slot, lane, state, expires, jobs)
    SELECT (SELECT last_value %% 2 FROM rota.tally_turn), lane.id, 'cancelled', kind.keep_until,
           kind.jobs
    FROM (
        SELECT queue, priority, keep_until, count(*) AS jobs FROM ended
        GROUP BY queue, priority, keep_until
    ) AS kind
    JOIN rota.lane ON lane.queue = kind.queue AND lane.priority = kind.priority AND NOT lane.of_key
)
SELECT id, unique_key, headers ->> 'rota.node' FROM ended
