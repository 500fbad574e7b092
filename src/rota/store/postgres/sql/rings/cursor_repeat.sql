-- Repeat the newest cursor entries that stand in the table which was left in the current one, and
-- give their lanes; the old ones stay until their table is truncated. All lanes are locked.
-- A key lane without rows in the log needs none: whatever comes there has not been handed out.
-- A plain lane without rows in the log begins its count anew where there are many lanes: what it
-- has handed out is taken from what was appended as well, so that the totals of idle queues leave
-- the marks.
WITH place AS MATERIALIZED (
    SELECT newest.*, lane.of_key,
           NOT lane.of_key AND NOT (SELECT few FROM rota.lane_few)
           AND NOT EXISTS (SELECT FROM rota.log AS job WHERE job.lane = newest.lane) AS idle
    FROM rota.cursor_newest AS newest
    CROSS JOIN LATERAL (
        SELECT lane.of_key FROM rota.lane WHERE lane.id = newest.lane LIMIT 1
    ) AS lane
    WHERE newest.slot <> (SELECT last_value % 2 FROM rota.cursor_turn)
      AND (NOT lane.of_key OR EXISTS (SELECT FROM rota.log AS job WHERE job.lane = newest.lane))
), counted AS (
    INSERT INTO rota.tally (slot, lane, state, jobs)
    SELECT (SELECT last_value % 2 FROM rota.tally_turn), lane, 'appended', -taken
    FROM place WHERE idle AND taken <> 0
)
INSERT INTO rota.cursor (slot, lane, seq, xid, id, taken, hole_xids, hole_ids)
SELECT (SELECT last_value % 2 FROM rota.cursor_turn), lane, seq + 1, xid, id,
       CASE WHEN idle THEN 0 ELSE taken END, hole_xids, hole_ids
FROM place
RETURNING lane
