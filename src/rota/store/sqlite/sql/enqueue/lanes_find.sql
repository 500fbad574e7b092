-- The lane of each pair [limit's key, fair key] of a JSON array, in its order; null where there is
-- no lane, or where its limit has other numbers than these. Locks nothing. Walks the unique keys of
-- both tables.
SELECT (
    SELECT lane.id FROM rota_lane AS lane
    WHERE lane.queue = :queue AND lane.priority = :priority
      AND lane.fair = coalesce(json_extract(wanted.value, '$[1]'), '')
      AND lane.limit_id = CASE WHEN json_extract(wanted.value, '$[0]') IS NULL THEN 0 ELSE (
          SELECT id FROM rota_limit
          WHERE key = json_extract(wanted.value, '$[0]') AND running IS :running
            AND rate_count IS :rate_count AND rate_seconds IS :rate_seconds) END)
FROM json_each(:pairs) AS wanted
ORDER BY wanted.key;
