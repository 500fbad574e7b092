-- The two tables each of the cursor and of the tally: ring, number, size in bytes, whether new rows
-- go there.
SELECT ring.name, number, pg_relation_size(format('rota.%s_%s', ring.name, number)::regclass),
       number = ring.turn % 2
FROM (
    SELECT 'cursor' AS name, last_value AS turn FROM rota.cursor_turn
    UNION ALL
    SELECT 'tally', last_value FROM rota.tally_turn
) AS ring
CROSS JOIN generate_series(0, 1) AS number
ORDER BY ring.name, number
