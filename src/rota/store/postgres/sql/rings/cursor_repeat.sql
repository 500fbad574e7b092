-- Repeat the newest cursor entries that stand in the table which was left in the current one, and give
-- their lanes; the old ones stay until their table is truncated. All lanes are locked.
-- A key lane without rows in the log needs none: whatever comes there has not been handed out.
INSERT INTO rota.cursor (slot, lane, seq, xid, id, taken, hole_xids, hole_ids)
SELECT (SELECT last_value % 2 FROM rota.cursor_turn), newest.lane, newest.seq + 1, newest.xid, newest.id,
       newest.taken, newest.hole_xids, newest.hole_ids
FROM rota.cursor_newest AS newest
CROSS JOIN LATERAL (
    SELECT lane.of_key FROM rota.lane WHERE lane.id = newest.lane LIMIT 1
) AS lane
WHERE newest.slot <> (SELECT last_value % 2 FROM rota.cursor_turn)
  AND (NOT lane.of_key OR EXISTS (SELECT FROM rota.log AS job WHERE job.lane = newest.lane))
RETURNING lane
