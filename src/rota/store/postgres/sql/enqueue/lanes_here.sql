-- Whether this transaction has made lanes itself, at all or this queue or its plain lane with `rota.enqueue()`
-- from SQL: another connection would not see them, or wait for them without end. A row that is visible while the
-- transaction that wrote it is in progress is this transaction's own. Its age is not above 0 then; that
-- comes first, since it alone can be asked of every row. Locks nothing.
SELECT coalesce(current_setting('rota.lanes_here', true), '') = 'yes' OR EXISTS (
    SELECT FROM (
        SELECT xmin FROM rota.queue WHERE name = %(queue)s
        UNION ALL
        SELECT xmin FROM rota.lane
        WHERE queue = %(queue)s AND priority = %(priority)s::int2 AND NOT of_key
    ) AS made
    WHERE CASE WHEN age(made.xmin) <= 0 THEN pg_xact_status(
        (pg_current_xact_id()::text::int8 - age(made.xmin))::text::xid8) = 'in progress' END)
