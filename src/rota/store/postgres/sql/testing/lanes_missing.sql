-- Which of these pairs of queue and priority have no plain lane. Locks nothing. Walks lane_plain.
SELECT wanted.queue, wanted.priority
FROM unnest(%(queues)s::text[], %(priorities)s::int4[]) AS wanted (queue, priority)
WHERE NOT EXISTS (
    SELECT FROM rota.lane
    WHERE lane.queue = wanted.queue AND lane.priority = wanted.priority AND NOT lane.of_key)
ORDER BY wanted.queue, wanted.priority
