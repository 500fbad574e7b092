-- The finished ring's segments: number, size in bytes, whether new rows go there, age of the
-- first row.
SELECT number, pg_relation_size(('rota.finished_' || number)::regclass),
       number = (SELECT last_value % 6 FROM rota.finished_turn),
       extract(epoch FROM now() - (
           SELECT finished_at FROM rota.finished WHERE segment = number LIMIT 1))::float8
FROM generate_series(0, 5) AS number ORDER BY number
