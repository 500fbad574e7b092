-- The id down to which a listing of all jobs looks, so that it reads at most `most`; no row: there
-- are no more.
-- Locks nothing. Walks: rota_job by its primary key, backwards.
SELECT id FROM rota_job WHERE id <= :until ORDER BY id DESC LIMIT 1 OFFSET :most - 1;
