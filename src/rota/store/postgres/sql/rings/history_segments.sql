-- The history's segments: number, size in bytes, whether new rows go there, and for how many
-- seconds they have (null: they do not).
SELECT number, pg_relation_size('rota.history_' || number), number = turn.last_value % 5,
       CASE WHEN number = turn.last_value % 5 THEN
           extract(epoch FROM clock_timestamp())::float8 - (SELECT last_value FROM rota.history_begun) END
FROM rota.history_turn AS turn CROSS JOIN generate_series(0, 4) AS number
ORDER BY number
