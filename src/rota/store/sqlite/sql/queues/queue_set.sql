-- Set what `names` (a JSON array) lists for a queue, and leave the rest as it is; null takes a
-- setting away. Infinity stands for itself. RETURNING gives whole numbers as integers unless they
-- are cast.
-- Locks: the database. Walks: rota_queue_setting by its primary key.
INSERT INTO rota_queue_setting AS said
       (queue, completed, cancelled, discarded, max_attempts, timeout, concurrency)
VALUES (:queue, :completed, :cancelled, :discarded, :max_attempts, :timeout, :concurrency)
ON CONFLICT (queue) DO UPDATE SET
    completed = iif('completed' IN (SELECT value FROM json_each(:names)),
                    excluded.completed, said.completed),
    cancelled = iif('cancelled' IN (SELECT value FROM json_each(:names)),
                    excluded.cancelled, said.cancelled),
    discarded = iif('discarded' IN (SELECT value FROM json_each(:names)),
                    excluded.discarded, said.discarded),
    max_attempts = iif('max_attempts' IN (SELECT value FROM json_each(:names)),
                       excluded.max_attempts, said.max_attempts),
    timeout = iif('timeout' IN (SELECT value FROM json_each(:names)),
                  excluded.timeout, said.timeout),
    concurrency = iif('concurrency' IN (SELECT value FROM json_each(:names)),
                      excluded.concurrency, said.concurrency)
RETURNING queue, cast(completed AS REAL), cast(cancelled AS REAL), cast(discarded AS REAL),
          max_attempts, cast(timeout AS REAL), concurrency;
