-- The id down to which a listing of the jobs that ended in `state` looks, so that it reads at most
-- `most`; no row: there are no more. Locks nothing. Walks: rota_job_finished, backwards.
SELECT id FROM rota_job INDEXED BY rota_job_finished
WHERE state = :state AND finished_at IS NOT NULL AND id <= :until
ORDER BY id DESC LIMIT 1 OFFSET :most - 1;
