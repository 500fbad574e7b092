-- In how many seconds the timer needs a staging (null: not at all). Timers that the newest mark has
-- not seen need one at once, even if they are due later: it makes the next mark, so that they are
-- looked at only once.
-- So do signals and waits that have not been compared, see deliver.sql.
-- Locks nothing and writes nothing. Walks what stage.sql and deliver.sql walk, to its first hit.
WITH mark AS MATERIALIZED (
    SELECT run_at, id, snapshot FROM rota.timer_mark ORDER BY seq DESC LIMIT 1
), said AS MATERIALIZED (
    SELECT snapshot FROM rota.signal_mark ORDER BY seq DESC LIMIT 1
)
SELECT CASE
    WHEN EXISTS (SELECT FROM rota.timer
                 WHERE timer.xid >= (SELECT pg_snapshot_xmax(snapshot) FROM mark))
      OR EXISTS (
        SELECT FROM (SELECT pg_snapshot_xip(snapshot) AS xid FROM mark) AS running
        CROSS JOIN LATERAL (
            SELECT timer.id, timer.run_at FROM rota.timer
            WHERE timer.xid = running.xid ORDER BY timer.xid
        ) AS timer
        WHERE (timer.run_at, timer.id) <= ((SELECT run_at FROM mark), (SELECT id FROM mark)))
      OR EXISTS (SELECT FROM rota.memory
                 WHERE memory.xid >= (SELECT pg_snapshot_xmax(snapshot) FROM said))
      OR EXISTS (
        SELECT FROM (SELECT pg_snapshot_xip(snapshot) AS xid FROM said) AS running
        CROSS JOIN LATERAL (
            SELECT memory.job FROM rota.memory WHERE memory.xid = running.xid ORDER BY memory.xid
        ) AS memory)
    THEN 0
    ELSE (
        SELECT greatest(0, extract(epoch FROM timer.run_at - clock_timestamp()))::float8
        FROM rota.timer
        WHERE (timer.run_at, timer.id) > ((SELECT run_at FROM mark), (SELECT id FROM mark))
        ORDER BY timer.run_at, timer.id LIMIT 1)
END
