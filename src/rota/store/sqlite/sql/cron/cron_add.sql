-- Store a new entry; gives its id and the time, and nothing where the name is taken.
-- It begins with INSERT, not WITH, as enqueue.sql does. Locks: the database.
INSERT INTO rota_cron_entry (name, expression, timezone, missed, jitter, task, args, parameter, queue,
                             priority, max_attempts, timeout, options, declaration, created_at)
SELECT :name, :expression, :timezone, :missed, :jitter, :task, :args, :parameter, :queue,
       :priority, :max_attempts, :timeout, :options, :declaration,
       (julianday('now') - 2440587.5) * 86400.0
WHERE true
ON CONFLICT (name) DO NOTHING
RETURNING id, created_at;
