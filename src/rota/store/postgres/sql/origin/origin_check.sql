-- Whether the tables were restored here from a dump, so that transaction ids in them mean nothing
-- here: what rota.restored finds with few probes, or ids to come in the timer, the tally, the log
-- and the cursors of key lanes; or plain lanes without a cursor, which a dump beside a truncation
-- may bring.
-- Locks nothing. Walks timer_xid, tally_xid and log_order from there on, and cursor_order.
SELECT restored.sure
    OR coalesce((
        SELECT true FROM rota.timer
        WHERE timer.xid >= pg_snapshot_xmax(pg_current_snapshot())
        ORDER BY timer.xid LIMIT 1), false)
    OR coalesce((
        SELECT true FROM rota.tally
        WHERE tally.xid >= pg_snapshot_xmax(pg_current_snapshot())
        ORDER BY tally.xid LIMIT 1), false)
    OR EXISTS (
        SELECT FROM rota.lane_used AS lane
        CROSS JOIN LATERAL (
            SELECT FROM rota.log AS job
            WHERE job.lane = lane.id AND job.xid >= pg_snapshot_xmax(pg_current_snapshot())
            ORDER BY job.lane, job.xid, job.id LIMIT 1
        ) AS job)
    OR EXISTS (
        SELECT FROM rota.cursor_newest AS place
        WHERE place.xid >= pg_snapshot_xmax(pg_current_snapshot()))
    OR EXISTS (
        SELECT FROM rota.lane
        WHERE NOT lane.of_key AND NOT EXISTS (SELECT FROM rota.cursor WHERE cursor.lane = lane.id))
FROM rota.restored
