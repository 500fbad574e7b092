-- The ids of the jobs from `since` to `until` that have one of the unique keys from `first` to
-- `last` (in a state, of a queue, of a task, with a value at a path of the args that is not hidden,
-- in args that are not long; null means any), the newest first, without those that have lost their
-- key and those past their retention. Locks nothing.
-- Walks: rota_job by its primary key, backwards.
SELECT id
FROM rota_job NOT INDEXED
WHERE id <= :until AND id >= :since AND unique_key >= :first AND unique_key <= :last
  AND (:state IS NULL OR state = :state)
  AND (:queue IS NULL OR queue = :queue) AND (:task IS NULL OR task = :task)
  AND (:path IS NULL OR length(args) <= 16384 AND CASE json_type(args, :path) WHEN 'true' THEN 'true' WHEN 'false' THEN 'false'
       ELSE CAST(json_extract(args, :path) AS TEXT) END = :value
       AND instr(',' || coalesce(json_extract(headers, '$."rota.redact"'), '') || ',', :hidden) = 0)
  AND (finished_at IS NOT NULL OR EXISTS (SELECT 1 FROM rota_unique WHERE job = rota_job.id))
  AND (keep_until IS NULL OR keep_until > (julianday('now') - 2440587.5) * 86400.0)
ORDER BY id DESC
LIMIT :size;
