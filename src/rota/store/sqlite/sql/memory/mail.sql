-- The oldest signal of a name to a job that no wait has taken. Locks nothing; read in the
-- transaction of answer.sql.
-- Walks: rota_memory_order.
SELECT ref, value FROM rota_memory AS signal
WHERE job = :job AND kind = 'signal' AND name = :signal
  AND NOT EXISTS (
    SELECT 1 FROM rota_memory AS answer
    WHERE answer.job = signal.job AND answer.kind = 'answer' AND answer.ref = signal.ref)
ORDER BY id LIMIT 1;
