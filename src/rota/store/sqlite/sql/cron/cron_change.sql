-- Write an entry.
-- Locks: the database.
UPDATE rota_cron_entry
SET expression = :expression, timezone = :timezone, missed = :missed, jitter = :jitter, task = :task,
    args = :args, parameter = :parameter, queue = :queue, priority = :priority,
    max_attempts = :max_attempts, timeout = :timeout, options = :options,
    declaration = coalesce(:declaration, declaration)
WHERE id = :entry
RETURNING id;
