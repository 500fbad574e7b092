-- How many jobs there are (in a state, of a queue, of a task, of the unique keys from `first` to
-- `last`; null means any), without those past their retention. Reads them all. Locks nothing. Of a
-- key counts what list_subject.sql lists.
SELECT count(*)
FROM rota_job
WHERE (:state IS NULL OR state = :state) AND (:queue IS NULL OR queue = :queue)
  AND (:task IS NULL OR task = :task)
  AND (:first IS NULL OR (unique_key >= :first AND unique_key <= :last
    AND (finished_at IS NOT NULL OR EXISTS (SELECT 1 FROM rota_unique WHERE job = rota_job.id))))
  AND (keep_until IS NULL OR keep_until > (julianday('now') - 2440587.5) * 86400.0);
