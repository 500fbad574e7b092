-- Make the lanes of these pairs of keys known. Waits only for another transaction that makes the
-- same lanes, in the same order: a short one.
INSERT INTO rota.lane (queue, priority, limit_id, fair)
SELECT DISTINCT %(queue)s::text, CAST(%(priority)s AS int2), coalesce(limit_key.id, 0) AS limit_id,
       coalesce(wanted.fair, '') AS fair
FROM unnest(%(limits)s::text[], %(fairs)s::text[]) AS wanted (limited, fair)
LEFT JOIN rota.limit_key ON limit_key.key = wanted.limited
WHERE NOT EXISTS (
    -- A conflict would use up a number.
    SELECT FROM rota.lane
    WHERE lane.queue = %(queue)s AND lane.priority = CAST(%(priority)s AS int2)
      AND lane.limit_id = coalesce(limit_key.id, 0) AND lane.fair = coalesce(wanted.fair, ''))
ORDER BY limit_id, fair
ON CONFLICT DO NOTHING
