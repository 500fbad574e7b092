-- How much of a segment of finished jobs is kept: in a sample of some 64 of its blocks, the share of the bytes
-- that are of jobs within their retention; and for how many seconds at the most (null: none is).
SELECT coalesce(sum(bytes) FILTER (WHERE seconds > 0) / sum(bytes)::float8, 0),
       max(seconds) FILTER (WHERE seconds > 0)
FROM (
    SELECT 100 + pg_column_size(args) + coalesce(pg_column_size(result), 0)
           + coalesce(pg_column_size(errors), 0)
           + coalesce(pg_column_size(headers), 0) AS bytes,
           extract(epoch FROM keep_until - now())::float8 AS seconds
    FROM rota.finished TABLESAMPLE SYSTEM (least(100, 6400.0 * current_setting('block_size')::int8
        / greatest(1, pg_relation_size(('rota.finished_' || %(segment)s::int2)::regclass))))
    WHERE segment = %(segment)s::int2
) AS job
