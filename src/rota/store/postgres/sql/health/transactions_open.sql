-- Clients' transactions in all databases that began at least so long ago, the oldest first. Leaves
-- out the server's own processes, standbys, and this session. Sessions that the role may not see
-- are missing; see transactions_hidden.sql.
SELECT pid, backend_start, xact_start, usename::text, application_name, datname::text,
       coalesce(client_addr::text, ''), state,
       extract(epoch FROM clock_timestamp() - xact_start)::float8, query
FROM pg_stat_activity
WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND usename IS NOT NULL
  AND xact_start <= clock_timestamp() - make_interval(secs => %(seconds)s::float8)
ORDER BY xact_start
