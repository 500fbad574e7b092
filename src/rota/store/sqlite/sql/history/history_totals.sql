-- The running totals of each queue. Locks nothing. Walks: rota_count, which does not grow with the
-- jobs.
SELECT queue, coalesce(sum(jobs) FILTER (WHERE state = 'appended'), 0),
       coalesce(sum(jobs) FILTER (WHERE state = 'claimed'), 0),
       coalesce(sum(jobs) FILTER (WHERE state = 'completed'), 0),
       coalesce(sum(jobs) FILTER (WHERE state = 'discarded'), 0),
       coalesce(sum(jobs) FILTER (WHERE state = 'removed'), 0)
FROM rota_count
WHERE state IN ('appended', 'claimed', 'removed') OR expires = -9e999
GROUP BY queue;
