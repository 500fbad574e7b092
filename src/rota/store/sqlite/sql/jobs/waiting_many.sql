-- Whether more than `most` jobs wait for their time. Locks nothing. Walks: rota_job_waiting, `most`
-- entries of it.
SELECT count(*) > :most
FROM (SELECT 1 FROM rota_job INDEXED BY rota_job_waiting WHERE scheduled_at IS NOT NULL LIMIT :most + 1);
