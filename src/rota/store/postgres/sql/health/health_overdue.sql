-- For how long the first waiting job has been due; null if none is. Walks timer_due from the newest
-- mark on, as staging does, and looks at up to 1,000 jobs that came after the mark's snapshot with
-- an earlier time, by timer_xid.
WITH mark AS MATERIALIZED (
    SELECT run_at, id, snapshot FROM rota.timer_mark ORDER BY seq DESC LIMIT 1
), first AS (
    SELECT (
        SELECT timer.run_at FROM rota.timer
        WHERE (timer.run_at, timer.id) > ((SELECT run_at FROM mark), (SELECT id FROM mark))
        ORDER BY timer.run_at, timer.id LIMIT 1
    ) AS run_at
    UNION ALL
    SELECT min(late.run_at) FROM (
        SELECT timer.run_at FROM rota.timer
        WHERE timer.xid >= (SELECT pg_snapshot_xmax(snapshot) FROM mark)
        ORDER BY timer.xid LIMIT 1000
    ) AS late
)
SELECT extract(epoch FROM clock_timestamp() - min(run_at))::float8
FROM first
