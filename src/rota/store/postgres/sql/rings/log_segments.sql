-- The log's segments: number, size in bytes with what long values occupy elsewhere, whether new
-- rows go there, and for how many seconds they have (null: they do not).
SELECT number, pg_relation_size(segment.oid) + coalesce(pg_relation_size(segment.reltoastrelid), 0),
       number = turn.last_value % 4,
       CASE WHEN number = turn.last_value % 4 THEN
           extract(epoch FROM clock_timestamp())::float8 - (SELECT last_value FROM rota.log_begun) END
FROM rota.log_turn AS turn CROSS JOIN generate_series(0, 3) AS number
JOIN pg_class AS segment ON segment.oid = ('rota.log_' || number)::regclass
ORDER BY number
