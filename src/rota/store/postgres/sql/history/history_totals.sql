-- The running totals of each queue, how many of its jobs are available, and of how many plain lanes
-- these are sums: one statement, hence one snapshot. Idle queues whose totals have left the marks
-- are missing.
-- Locks nothing. Walks what squeeze.sql walks: what came since the newest mark, never the jobs; the
-- newest cursor entry of each lane; and lane_plain for each queue.
SELECT part.queue,
       coalesce(sum(part.jobs) FILTER (WHERE part.state = 'appended'), 0)::int8,
       coalesce(sum(part.jobs) FILTER (WHERE part.state = 'claimed'), 0)::int8,
       coalesce(sum(part.jobs) FILTER (WHERE part.state = 'completed'), 0)::int8,
       coalesce(sum(part.jobs) FILTER (WHERE part.state = 'discarded'), 0)::int8,
       coalesce(sum(part.jobs) FILTER (WHERE part.state = 'removed'), 0)::int8,
       (SELECT count(*) FROM rota.lane WHERE lane.queue = part.queue AND NOT lane.of_key)::int4
FROM (
    SELECT lane.queue, counted.state, counted.jobs
    FROM (
        SELECT lane, state, jobs FROM rota.counter
        WHERE state IN ('appended', 'claimed', 'removed') OR expires = '-infinity'
        UNION ALL
        SELECT lane, 'claimed', taken FROM rota.cursor_newest
    ) AS counted
    CROSS JOIN LATERAL (SELECT queue FROM rota.lane WHERE lane.id = counted.lane LIMIT 1) AS lane
) AS part
GROUP BY part.queue
