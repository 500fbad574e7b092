-- Make the lanes of these pairs known. `pairs` as in lanes_find.sql.
INSERT INTO rota_lane (queue, priority, limit_id, fair)
SELECT DISTINCT :queue, :priority, coalesce(rota_limit.id, 0),
       coalesce(json_extract(wanted.value, '$[1]'), '')
FROM json_each(:pairs) AS wanted
LEFT JOIN rota_limit ON rota_limit.key = json_extract(wanted.value, '$[0]')
WHERE true
ON CONFLICT DO NOTHING;
