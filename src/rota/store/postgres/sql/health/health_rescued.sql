-- Tasks whose jobs were alone when their worker died within the last hour, among the 1,000 newest
-- finished jobs, up to 1,000 that run, and those of the 1,000 entries at the end of each lane that
-- wait (where there are many lanes, of fewer: 20,000 in all, and no more than 2,000 lanes), where a
-- rescue puts what shall run again: it leaves its mark in a job's errors and nowhere else. A job
-- that was completed in the end is nothing to worry about; one that is seen more than once counts
-- once.
-- Locks nothing. Walks finished_job, log_order and cursor_order backwards, and log_job for what is
-- leased.
WITH seen AS (
    (SELECT id, task, errors
     FROM (SELECT id, task, errors, state FROM rota.finished ORDER BY id DESC LIMIT 1000) AS ended
     WHERE state <> 'completed')
    UNION ALL
    (SELECT held.id, job.task, job.errors
     FROM rota.lease
     CROSS JOIN LATERAL unnest(lease.jobs) AS held (id)
     CROSS JOIN LATERAL (
         SELECT entry.task, entry.errors FROM rota.log AS entry WHERE entry.id = held.id
         ORDER BY entry.id DESC, entry.entry DESC LIMIT 1
     ) AS job
     LIMIT 1000)
    UNION ALL
    SELECT job.id, job.task, job.errors
    FROM (SELECT id FROM rota.lane_used LIMIT 2000) AS lane
    CROSS JOIN LATERAL (
        SELECT entry.id, entry.xid, entry.task, entry.errors FROM rota.log AS entry
        WHERE entry.lane = lane.id
        ORDER BY entry.lane DESC, entry.xid DESC, entry.id DESC
        LIMIT (SELECT greatest(10, least(1000, 20000 / last_value)) FROM rota.lane_id_seq)
    ) AS job
    LEFT JOIN LATERAL (
        SELECT place.xid, place.id FROM rota.cursor AS place WHERE place.lane = lane.id
        ORDER BY place.lane DESC, place.seq DESC LIMIT 1
    ) AS place ON true
    WHERE place.xid IS NULL OR (job.xid, job.id) > (place.xid, place.id)
)
SELECT task, count(DISTINCT id), min(extract(epoch FROM clock_timestamp()
                                           - (errors -> -1 ->> 'at')::timestamptz))::float8,
       max(id)
FROM seen
WHERE errors -> -1 ->> 'exception' = 'rota.WorkerDied'
  AND coalesce((errors -> -1 ->> 'suspects')::int4, 1) = 1
  AND (errors -> -1 ->> 'at')::timestamptz > clock_timestamp() - interval '1 hour'
GROUP BY task
ORDER BY count(DISTINCT id) DESC
LIMIT 20
