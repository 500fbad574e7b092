-- Make limits known, and give them the numbers that the code says now. `pairs` as in
-- lanes_find.sql.
-- It begins with INSERT for the same reason as enqueue.sql.
INSERT INTO rota_limit (key, running, rate_count, rate_seconds)
SELECT DISTINCT json_extract(value, '$[0]'), :running, :rate_count, :rate_seconds
FROM json_each(:pairs)
WHERE json_extract(value, '$[0]') IS NOT NULL
ON CONFLICT (key) DO UPDATE
SET running = excluded.running, rate_count = excluded.rate_count, rate_seconds = excluded.rate_seconds;
