-- The highest id below `below` among the last ten jobs that wait in each lane (null: there is none,
-- or more than 1,000 lanes are in use). A lane has the order of transactions, so a job with a
-- higher id may be further from its end, where transactions overlapped.
-- Locks nothing. Walks cursor_order and log_order backwards, a few entries of each lane.
WITH few AS MATERIALIZED (
    SELECT id FROM rota.lane_used AS lane WHERE %(queue)s::text IS NULL OR lane.queue = %(queue)s LIMIT 1001
)
SELECT max(job.id)
FROM few
CROSS JOIN LATERAL (SELECT * FROM rota.lane_place WHERE lane_place.lane = few.id LIMIT 1) AS place
CROSS JOIN LATERAL (
    SELECT job.id FROM rota.log AS job
    WHERE job.lane = few.id AND (job.xid, job.id) > (place.xid, place.id)
    ORDER BY job.lane DESC, job.xid DESC, job.id DESC LIMIT 10
) AS job
WHERE job.id < %(below)s::int8 AND (SELECT count(*) FROM few) <= 1000
