-- A table of Rota's that Citus has distributed, if there is one. It is asked where Citus is
-- installed. Local tables that Citus knows are no matter: they have no way of distribution and no
-- group. Locks nothing.
SELECT p.logicalrelid::regclass::text
FROM pg_dist_partition p
JOIN pg_class c ON c.oid = p.logicalrelid
WHERE c.relnamespace = 'rota'::regnamespace AND (p.partmethod <> 'n' OR p.colocationid <> 0)
ORDER BY 1
LIMIT 1
