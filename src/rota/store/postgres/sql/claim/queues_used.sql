-- The queues that have rows in the log, up to `most` lanes of them: all others have nothing to
-- claim, nor has any hole of theirs. Locks nothing. Walks log_order from lane to lane, with one
-- probe for each, and stops there.
WITH RECURSIVE used AS (
    (SELECT job.lane FROM rota.log AS job ORDER BY job.lane, job.xid, job.id LIMIT 1)
    UNION ALL
    SELECT next.lane FROM used
    CROSS JOIN LATERAL (
        SELECT job.lane FROM rota.log AS job WHERE job.lane > used.lane
        ORDER BY job.lane, job.xid, job.id LIMIT 1
    ) AS next
)
SELECT (SELECT queue FROM rota.lane WHERE lane.id = used.lane) FROM used LIMIT %(most)s::int8
