-- Which transactions have locked which of these tables, in whatever mode. Each is named by its own
-- id, also where it is prepared; every role may see that. Locks nothing, and stops others no longer
-- than it takes to copy the server's list of locks.
SELECT segment.relname::text, lock.virtualtransaction
FROM pg_locks AS lock
JOIN pg_class AS segment ON segment.oid = lock.relation
WHERE lock.granted AND lock.pid IS DISTINCT FROM pg_backend_pid()
  AND lock.database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND lock.relation = ANY (ARRAY(
      SELECT ('rota.' || wanted.name)::regclass::oid FROM unnest(%(tables)s::text[]) AS wanted (name)))
