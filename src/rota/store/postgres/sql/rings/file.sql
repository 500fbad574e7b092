-- The file that a table has now: TRUNCATE gives it another. Locks nothing.
SELECT pg_relation_filenode(('rota.' || %(table)s::text)::regclass)
