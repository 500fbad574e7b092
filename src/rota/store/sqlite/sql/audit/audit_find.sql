-- The row that a job carries out, how far the job has come, and what it has changed. Locks nothing.
-- Walks: rota_audit by its primary key, backwards; there are 10,000 rows at the most.
SELECT id, position, changed FROM rota_audit WHERE job = :job ORDER BY id DESC LIMIT 1;
