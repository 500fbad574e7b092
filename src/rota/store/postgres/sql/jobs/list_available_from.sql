-- Jobs that may be claimed, with ids from `first` to `until`, newest first; a null filter means any; args that are hidden are not
-- looked into. Locks
-- nothing. Void entries of unique jobs are left out.
-- Walks: log_job backwards, past what was claimed and is still in the segments.
SELECT job.id, job.task, job.args::text, lane.queue, lane.priority, 'available', job.attempt,
       job.max_attempts, job.timeout, job.enqueued_at, NULL::timestamptz, NULL::timestamptz,
       NULL::text, job.errors::text, NULL::text, false, job.unique_key, job.iteration, job.last_run,
       job.headers::text
FROM rota.log AS job
JOIN rota.lane ON lane.id = job.lane
CROSS JOIN LATERAL (
    SELECT * FROM rota.lane_place WHERE lane_place.lane = job.lane LIMIT 1
) AS place
WHERE job.id >= %(first_id)s::int8 AND job.id <= %(until)s::int8
  AND ((job.xid, job.id) > (place.xid, place.id)
    OR job.id > place.hole_ids[array_position(place.hole_xids, job.xid)])
  AND (%(path)s::text[] IS NULL OR (job.args #>> %(path)s::text[] = %(value)s
      AND coalesce((%(path)s::text[])[1] <> ALL (string_to_array(job.headers ->> 'rota.redact', ',')), true)))
  AND (%(queue)s::text IS NULL OR lane.queue = %(queue)s)
  AND (%(task)s::text IS NULL OR job.task = %(task)s)
  AND (job.unique_key IS NULL OR coalesce((
      SELECT true FROM rota.unique_key AS held
      WHERE held.key = job.unique_key AND held.task = job.task AND held.job = job.id
        AND held.entry = job.entry), false))
ORDER BY job.id DESC LIMIT %(size)s::int8
