-- Prepared transactions of all databases that are at least so old. They belong to no session.
SELECT gid, owner::text, database::text,
       extract(epoch FROM clock_timestamp() - prepared)::float8
FROM pg_prepared_xacts
WHERE prepared <= clock_timestamp() - make_interval(secs => %(seconds)s::float8)
ORDER BY prepared
