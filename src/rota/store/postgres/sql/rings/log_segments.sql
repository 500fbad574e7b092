-- The log's segments: number, size in bytes, whether new rows go there, age of the first row.
SELECT number, pg_relation_size(('rota.log_' || number)::regclass),
       number = (SELECT last_value % 4 FROM rota.log_turn),
       extract(epoch FROM now() - (
           SELECT enqueued_at FROM rota.log WHERE segment = number LIMIT 1))::float8
FROM generate_series(0, 3) AS number ORDER BY number
