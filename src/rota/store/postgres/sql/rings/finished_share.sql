-- How much of a segment of finished jobs is kept: in a sample of some 64 of its blocks, the share
-- of the bytes that are of jobs within their retention; and for how many seconds at the most (null:
-- none is).
-- OFFSET 0: each size is taken once, though it is asked for twice, and only the latest end becomes
-- seconds.
SELECT coalesce(sum(bytes) FILTER (WHERE keep_until > now()) / sum(bytes)::float8, 0),
       extract(epoch FROM max(keep_until) FILTER (WHERE keep_until > now()))::float8 - extract(epoch FROM now())::float8
FROM (
    SELECT keep_until, 100 + pg_column_size(args) + coalesce(pg_column_size(result), 0)
           + coalesce(pg_column_size(errors), 0)
           + coalesce(pg_column_size(headers), 0) AS bytes
    FROM rota.finished TABLESAMPLE SYSTEM (least(100, 6400.0 * current_setting('block_size')::int8
        / greatest(1, pg_relation_size(('rota.finished_' || %(segment)s::int2)::regclass))))
    WHERE segment = %(segment)s::int2
    OFFSET 0
) AS job
