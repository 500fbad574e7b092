-- Tasks whose jobs were alone when their worker died within the last hour, among the 1,000 newest
-- jobs.
-- A job that was completed in the end is nothing to worry about.
-- Locks nothing. Walks: the end of rota_job's primary key.
WITH moment (now) AS (SELECT julianday('now')),
seen (id, task, days) AS (
    SELECT id, task, (SELECT now FROM moment) - julianday(json_extract(errors, '$[#-1].at'))
    FROM (SELECT id, task, errors, state FROM rota_job ORDER BY id DESC LIMIT 1000)
    WHERE state <> 'completed' AND json_extract(errors, '$[#-1].exception') = 'rota.WorkerDied'
      AND coalesce(json_extract(errors, '$[#-1].suspects'), 1) = 1
)
SELECT task, count(*), min(days) * 86400.0, max(id)
FROM seen WHERE days < 1.0 / 24
GROUP BY task ORDER BY count(*) DESC LIMIT 20;
