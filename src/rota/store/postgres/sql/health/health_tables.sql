-- Rota's tables as the catalog has them. A partitioned table with a sequence of its name and
-- `_turn` is a ring. The sizes take each table's weakest lock for a moment.
SELECT entry.relname::text, coalesce(ring.name, ''),
       coalesce(entry.relname = ring.name || '_' || (ring.turn % ring.count), false),
       coalesce(pg_relation_size(entry.oid), 0) + coalesce(pg_relation_size(entry.reltoastrelid), 0),
       coalesce(pg_total_relation_size(entry.oid), 0),
       coalesce(stat.n_dead_tup, 0)
FROM pg_class AS entry
JOIN pg_namespace AS schema ON schema.oid = entry.relnamespace
LEFT JOIN pg_stat_all_tables AS stat ON stat.relid = entry.oid
LEFT JOIN LATERAL (
    SELECT parent.relname AS name, coalesce(turn.last_value, turn.start_value) AS turn,
           (SELECT count(*) FROM pg_inherits AS sibling
            JOIN pg_class AS segment ON segment.oid = sibling.inhrelid
            WHERE sibling.inhparent = parent.oid AND segment.relname ~ '_[0-9]+$') AS count
    FROM pg_inherits AS one
    JOIN pg_class AS parent ON parent.oid = one.inhparent
    JOIN pg_sequences AS turn
      ON turn.schemaname = 'rota' AND turn.sequencename = parent.relname || '_turn'
    WHERE one.inhrelid = entry.oid AND entry.relname ~ '_[0-9]+$'
) AS ring ON true
WHERE schema.nspname = 'rota' AND entry.relkind = 'r'
ORDER BY entry.relname
