-- Queues with their counts per state: one statement, hence one snapshot, and exact in it. Rows
-- without a state are the queues themselves; 'appended' and 'claimed' are running totals, and what
-- is available is the difference. `recent` is how many rows came since the newest mark.
-- Locks nothing, and works where nothing may be written. Walks what squeeze.sql walks: what came
-- since the newest mark, never the jobs; and all leases, which their ring keeps few.
WITH counted AS (
    SELECT lane, state, sum(jobs) AS jobs, sum(recent) AS recent
    FROM rota.counter WHERE expires > now()
    GROUP BY lane, state
    UNION ALL
    SELECT lane, 'claimed', taken, 0 FROM rota.cursor_newest
    UNION ALL
    SELECT lane, 'running', cardinality(jobs), 0 FROM rota.lease
)
SELECT name, paused, NULL AS state, 0::int8 AS jobs, 0::int8 AS recent FROM rota.queue
UNION ALL
SELECT lane.queue, false, counted.state, sum(counted.jobs)::int8, sum(counted.recent)::int8
FROM counted
CROSS JOIN LATERAL (SELECT queue FROM rota.lane WHERE lane.id = counted.lane LIMIT 1) AS lane
GROUP BY lane.queue, counted.state
