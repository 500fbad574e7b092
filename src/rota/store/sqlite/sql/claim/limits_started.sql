-- Note how many jobs of limits with a rate start now; `starts` is a JSON array of [limit, jobs].
INSERT INTO rota_limit_start (limit_id, at, jobs)
SELECT json_extract(value, '$[0]'), (julianday('now') - 2440587.5) * 86400.0,
       json_extract(value, '$[1]')
FROM json_each(:starts);
