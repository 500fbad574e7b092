-- Make limits known, and give them the numbers that the code says now: the only change a limit's
-- row ever sees, which leaves one dead version. In the order of the keys, so that two producers
-- that do this at once wait for each other and do not deadlock.
INSERT INTO rota.limit_key AS known (key, running, rate_count, rate_seconds)
SELECT DISTINCT key, %(running)s::int4, %(rate_count)s::int4, %(rate_seconds)s::float4
FROM unnest(%(limits)s::text[]) AS wanted (key)
WHERE key IS NOT NULL AND NOT EXISTS (
    SELECT FROM rota.limit_key
    WHERE limit_key.key = wanted.key
      AND limit_key.running IS NOT DISTINCT FROM %(running)s::int4
      AND limit_key.rate_count IS NOT DISTINCT FROM %(rate_count)s::int4
      AND limit_key.rate_seconds IS NOT DISTINCT FROM %(rate_seconds)s::float4)
ORDER BY key
ON CONFLICT (key) DO UPDATE
SET running = excluded.running, rate_count = excluded.rate_count, rate_seconds = excluded.rate_seconds
