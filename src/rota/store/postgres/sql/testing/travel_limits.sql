-- Set back when jobs started whose rate is limited: those that this transaction has started. A row
-- that is visible while the transaction that wrote it is in progress is this transaction's own (see
-- lanes_here.sql). Locks these rows alone.
UPDATE rota.limit_start SET at = at - make_interval(secs => %(seconds)s::float8)
WHERE (SELECT CASE WHEN ahead < 100000000
                   THEN pg_xact_status((here.xid + ahead)::text::xid8) = 'in progress' END
       FROM (SELECT pg_current_xact_id()::text::int8 AS xid) AS here
       CROSS JOIN LATERAL (
           SELECT (limit_start.xmin::text::int8 - here.xid) & 4294967295 AS ahead) AS distance)
