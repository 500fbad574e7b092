-- The ids of the scheduled or retryable jobs from `since` to `until` (of a queue, of a task, with a
-- value at a path of the args that is not hidden, in args that are not long; null means any), the
-- newest first.
-- Locks nothing. Walks: rota_job by its primary key, backwards.
SELECT id
FROM rota_job NOT INDEXED
WHERE id <= :until AND id >= :since AND state = :state
  AND (:queue IS NULL OR queue = :queue) AND (:task IS NULL OR task = :task)
  AND (:path IS NULL OR length(args) <= 16384 AND CASE json_type(args, :path) WHEN 'true' THEN 'true' WHEN 'false' THEN 'false'
       ELSE CAST(json_extract(args, :path) AS TEXT) END = :value
       AND instr(',' || coalesce(json_extract(headers, '$."rota.redact"'), '') || ',', :hidden) = 0)
ORDER BY id DESC
LIMIT :size;
