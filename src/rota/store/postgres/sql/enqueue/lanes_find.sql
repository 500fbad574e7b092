-- The lane of each pair of keys (null: no such key), in their order; null where there is no lane,
-- or where its limit has other numbers than these, if that matters (`exact`). Locks nothing. Walks
-- limit_key's key and lane_key.
SELECT (
    SELECT lane.id FROM rota.lane
    WHERE lane.queue = %(queue)s AND lane.priority = CAST(%(priority)s AS int2)
      AND lane.fair = coalesce(wanted.fair, '')
      AND lane.limit_id = CASE WHEN wanted.limited IS NULL THEN 0 ELSE (
          SELECT limit_key.id FROM rota.limit_key
          WHERE limit_key.key = wanted.limited
            AND (NOT %(exact)s::bool
              OR (limit_key.running IS NOT DISTINCT FROM %(running)s::int4
                AND limit_key.rate_count IS NOT DISTINCT FROM %(rate_count)s::int4
                AND limit_key.rate_seconds IS NOT DISTINCT FROM %(rate_seconds)s::float4))) END)
FROM unnest(%(limits)s::text[], %(fairs)s::text[]) WITH ORDINALITY AS wanted (limited, fair, place)
ORDER BY wanted.place
