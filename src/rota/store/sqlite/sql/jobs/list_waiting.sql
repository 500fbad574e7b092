-- The ids of the newest scheduled or retryable jobs (of a queue, of a task, with a value at a path
-- of the args that is not hidden, in args that are not long; null means any).
-- Locks nothing. Walks: rota_job_waiting as a whole, and keeps the newest.
SELECT id
FROM rota_job INDEXED BY rota_job_waiting
WHERE scheduled_at IS NOT NULL AND state = :state
  AND (:queue IS NULL OR queue = :queue) AND (:task IS NULL OR task = :task)
  AND (:path IS NULL OR length(args) <= 16384 AND CASE json_type(args, :path) WHEN 'true' THEN 'true' WHEN 'false' THEN 'false'
       ELSE CAST(json_extract(args, :path) AS TEXT) END = :value
       AND instr(',' || coalesce(json_extract(headers, '$."rota.redact"'), '') || ',', :hidden) = 0)
  AND id <= :until AND id >= :since
ORDER BY id DESC
LIMIT :size;
