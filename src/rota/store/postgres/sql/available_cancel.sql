-- Cancel available jobs: the one case, with available_delete.sql, in which rows of the log are
-- deleted. Their lanes are locked, so no claim can hand them out meanwhile.
WITH waiting AS MATERIALIZED (
    SELECT entry.segment, entry.ctid AS place
    FROM rota.log AS entry
    CROSS JOIN LATERAL (
        SELECT place.xid, place.id, place.hole_xids, place.hole_ids
        FROM rota.cursor AS place WHERE place.lane = entry.lane
        ORDER BY place.lane DESC, place.seq DESC LIMIT 1
    ) AS place
    WHERE entry.id = ANY (%(jobs)s::int8[])
      AND ((entry.xid, entry.id) > (place.xid, place.id)
        OR entry.id > place.hole_ids[array_position(place.hole_xids, entry.xid)])
), job AS (
    DELETE FROM rota.log AS job USING waiting
    WHERE job.segment = waiting.segment AND job.ctid = waiting.place
    RETURNING job.*
)
INSERT INTO rota.finished (id, enqueued_at, keep_until, timeout, segment, priority, entry, attempt,
                           max_attempts, state, queue, task, args, errors)
SELECT job.id, job.enqueued_at, now() + interval '1 day', job.timeout,
       (SELECT last_value %% 6 FROM rota.finished_turn), lane.priority, job.entry, job.attempt,
       job.max_attempts, 'cancelled', lane.queue, job.task, job.args, job.errors
FROM job JOIN rota.lane ON lane.id = job.lane
RETURNING id
