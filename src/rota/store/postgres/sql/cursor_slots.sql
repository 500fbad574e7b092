-- The cursor's two tables: number, size in bytes, whether new entries go there.
SELECT number, pg_relation_size(('rota.cursor_' || number)::regclass),
       number = (SELECT last_value % 2 FROM rota.cursor_turn)
FROM generate_series(0, 1) AS number ORDER BY number
