-- Keep what handlers have told of their runs. `told` is a JSON array of [job, lease, attempt, line,
-- number, age in seconds, fraction, level, text]. Nothing is kept of jobs that are gone.
-- Locks: the database. Walks: rota_note and rota_job by their primary keys.
INSERT OR REPLACE INTO rota_note (job, lease, attempt, line, number, at, fraction, level, text)
SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]'),
       json_extract(value, '$[3]'), json_extract(value, '$[4]'),
       (julianday('now') - 2440587.5) * 86400.0 - json_extract(value, '$[5]'),
       json_extract(value, '$[6]'), json_extract(value, '$[7]'), json_extract(value, '$[8]')
FROM json_each(:told)
WHERE EXISTS (SELECT 1 FROM rota_job WHERE rota_job.id = json_extract(value, '$[0]'));
