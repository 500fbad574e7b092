-- The ids of the next jobs of a queue in one state. Locks nothing; read in the transaction that
-- deletes them. Walks: rota_job by its primary key, from where the last batch ended: all batches
-- together read the table once.
SELECT id
FROM rota_job
WHERE id > :after AND id <= :until AND +queue = :queue AND +state = :state AND state <> 'running'
ORDER BY id
LIMIT :size;
