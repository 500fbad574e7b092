-- The row that a job carries out, how far the job has come, and what it has changed. Locks nothing.
-- Walks: audit's primary key, backwards; there are 10,000 rows at the most.
SELECT id, position, changed FROM rota.audit WHERE job = %(job)s::int8 ORDER BY id DESC LIMIT 1
