-- The jobs after this one, in their order. Locks nothing. Walks: rota_job by its primary key.
SELECT id FROM rota_job WHERE id > :after ORDER BY id;
