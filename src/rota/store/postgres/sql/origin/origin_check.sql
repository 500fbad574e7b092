-- Whether the tables were restored here from a dump, so that transaction ids in them mean nothing here:
-- what rota.restored finds with few probes, or ids to come in the tally, in the log and among the cursors
-- of key lanes. Locks nothing. Walks log_order to each lane's right end, tally_xid and cursor_order.
SELECT restored.sure
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
FROM rota.restored
