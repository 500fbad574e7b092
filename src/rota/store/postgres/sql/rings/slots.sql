-- The rings of two tables (cursor, leases, tally, notes, memory, starts under a limit, marks of the
-- totals). For each table: ring, number, size in bytes with what long arrays occupy elsewhere,
-- whether new rows go there.
SELECT ring.name, number, pg_relation_size(slot.oid) + coalesce(pg_relation_size(slot.reltoastrelid), 0),
       number = ring.turn % 2
FROM (
    SELECT 'cursor' AS name, last_value AS turn FROM rota.cursor_turn
    UNION ALL
    SELECT 'lease', last_value FROM rota.lease_turn
    UNION ALL
    SELECT 'tally', last_value FROM rota.tally_turn
    UNION ALL
    SELECT 'note', last_value FROM rota.note_turn
    UNION ALL
    SELECT 'memory', last_value FROM rota.memory_turn
    UNION ALL
    SELECT 'limit_start', last_value FROM rota.limit_turn
    UNION ALL
    SELECT 'tally_mark', last_value FROM rota.tally_mark_turn
) AS ring
CROSS JOIN generate_series(0, 1) AS number
JOIN pg_class AS slot ON slot.oid = format('rota.%s_%s', ring.name, number)::regclass
ORDER BY ring.name, number
