-- Append for what jobs have just gone to sleep: it ends when it was said to, else so many seconds
-- after the beginning of the sleep, which is `delay` before the time of the job. `pauses` is a JSON
-- array of [job, kind, name, signal, delay, seconds, until].
-- Locks: the database. Walks: rota_job by its primary key.
INSERT INTO rota_memory (job, at, kind, name, ref, due, until)
SELECT job.id, (julianday('now') - 2440587.5) * 86400.0, json_extract(pause.value, '$[1]'),
       json_extract(pause.value, '$[2]'), json_extract(pause.value, '$[3]'), job.scheduled_at,
       coalesce(json_extract(pause.value, '$[6]'),
                job.scheduled_at + json_extract(pause.value, '$[5]') - json_extract(pause.value, '$[4]'))
FROM json_each(:pauses) AS pause
CROSS JOIN rota_job AS job ON job.id = json_extract(pause.value, '$[0]')
WHERE job.state = 'scheduled';
