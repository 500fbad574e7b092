-- Sessions that use Rota's tables and wait for a lock, and what blocks them (0: a prepared
-- transaction).
-- Reads the server's list of locks, and stops other sessions no longer than that takes.
SELECT waiting.pid, coalesce(session.application_name, ''),
       extract(epoch FROM clock_timestamp() - waiting.waitstart)::float8,
       pg_blocking_pids(waiting.pid)
FROM pg_locks AS waiting
LEFT JOIN pg_stat_activity AS session ON session.pid = waiting.pid
WHERE NOT waiting.granted
  AND EXISTS (
    SELECT FROM pg_locks AS lock
    JOIN pg_class AS entry ON entry.oid = lock.relation
    JOIN pg_namespace AS schema ON schema.oid = entry.relnamespace
    WHERE lock.pid = waiting.pid AND schema.nspname = 'rota'
      AND lock.database = (SELECT oid FROM pg_database WHERE datname = current_database()))
ORDER BY waiting.waitstart
LIMIT 50
