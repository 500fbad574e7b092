-- Queues with their counts per state: one statement, hence one snapshot, and exact in it. Rows without
-- a state are the queues themselves; 'appended' and 'claimed' are running totals, and what is
-- available is the difference. `recent` is how many rows came since the newest mark.
-- Locks nothing, and works where nothing may be written. Walks what squeeze.sql walks: what came
-- since the newest mark, never the jobs; and all leases, which their ring keeps few.
WITH counted AS (
    SELECT lane, state, sum(jobs) AS jobs, sum(recent) AS recent
    FROM rota.counter WHERE expires > now()
    GROUP BY lane, state
    UNION ALL
    SELECT lane.id, 'claimed', place.taken, 0
    FROM rota.lane
    CROSS JOIN LATERAL (
        SELECT place.taken FROM rota.cursor AS place WHERE place.lane = lane.id
        ORDER BY place.lane DESC, place.seq DESC LIMIT 1
    ) AS place
    UNION ALL
    SELECT lane, 'running', cardinality(jobs), 0 FROM rota.lease
)
SELECT name, paused, NULL AS state, 0::int8 AS jobs, 0::int8 AS recent FROM rota.queue
UNION ALL
SELECT lane.queue, false, counted.state, sum(counted.jobs)::int8, sum(counted.recent)::int8
FROM counted JOIN rota.lane ON lane.id = counted.lane
GROUP BY lane.queue, counted.state
