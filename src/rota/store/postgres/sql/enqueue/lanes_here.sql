-- Whether this transaction has made lanes itself, at all or this queue or its plain lane with
-- `rota.enqueue()` from SQL: another connection would not see them, or wait for them without end. A
-- row that is visible while the transaction that wrote it is in progress is this transaction's own;
-- its id, or that of a savepoint, is not far ahead of this transaction's (ids of rows lack their
-- upper half). Locks nothing.
SELECT coalesce(current_setting('rota.lanes_here', true), '') = 'yes' OR EXISTS (
    SELECT FROM (SELECT pg_current_xact_id_if_assigned()::text::int8 AS xid) AS here
    CROSS JOIN (
        SELECT xmin FROM rota.queue WHERE name = %(queue)s
        UNION ALL
        SELECT xmin FROM rota.lane
        WHERE queue = %(queue)s AND priority = CAST(%(priority)s AS int2) AND NOT of_key
    ) AS made
    CROSS JOIN LATERAL (
        SELECT (made.xmin::text::int8 - here.xid) & 4294967295 AS ahead
    ) AS distance
    WHERE CASE WHEN ahead < 100000000
               THEN pg_xact_status((here.xid + ahead)::text::xid8) = 'in progress' END)
