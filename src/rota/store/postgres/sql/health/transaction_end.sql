-- End a session if it still is in that very transaction, and wait up to five seconds until it has
-- ended. The process id alone could by now be another session's.
SELECT pg_terminate_backend(pid, 5000)
FROM pg_stat_activity
WHERE pid = %(pid)s::int4 AND backend_start = %(backend_start)s::timestamptz
  AND xact_start = %(xact_start)s::timestamptz
