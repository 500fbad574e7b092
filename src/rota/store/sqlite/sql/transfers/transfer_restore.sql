-- Give jobs that were stored in this transaction what they had where they come from: `jobs` is a
-- JSON array of [job, attempts, timeout, enqueued at, errors, iteration, last run, headers].
-- Locks: the database. Walks: rota_job by its primary key.
UPDATE rota_job
SET attempt = json_extract(was.value, '$[1]'), timeout = json_extract(was.value, '$[2]'),
    enqueued_at = json_extract(was.value, '$[3]'), errors = json_extract(was.value, '$[4]'),
    iteration = coalesce(json_extract(was.value, '$[5]'), 0),
    last_run = json_extract(was.value, '$[6]'), headers = json_extract(was.value, '$[7]')
FROM json_each(:jobs) AS was
WHERE rota_job.id = json_extract(was.value, '$[0]');
