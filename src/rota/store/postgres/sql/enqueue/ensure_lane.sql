-- Make a lane known. Waits only for another transaction that makes the same lane: a short one.
INSERT INTO rota.lane (queue, priority)
SELECT %(queue)s::text, CAST(%(priority)s AS int2)
WHERE NOT EXISTS (
    -- A conflict would use up a number.
    SELECT FROM rota.lane
    WHERE lane.queue = %(queue)s AND lane.priority = CAST(%(priority)s AS int2) AND NOT lane.of_key)
ON CONFLICT DO NOTHING
