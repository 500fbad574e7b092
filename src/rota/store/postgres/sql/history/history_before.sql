-- The totals of these queues when they were recorded last; the first minute in a segment has all
-- queues. Locks nothing. Walks the primary key of one segment: one probe for each queue.
SELECT asked.queue, last.total_appended, last.total_claimed, last.total_completed, last.total_discarded
FROM unnest(%(queues)s::text[]) AS asked (queue)
CROSS JOIN LATERAL (
    SELECT * FROM rota.history
    WHERE history.segment = %(segment)s::int2 AND history.queue = asked.queue
    ORDER BY history.queue DESC, history.minute DESC LIMIT 1
) AS last
