-- Repeat the newest cursor entry of every lane in the current table. All lanes are locked.
-- A key lane without rows in the log needs none: whatever comes there has not been handed out. What it
-- has handed out goes on counting, in the tally of the plain lane that stands for it.
WITH place AS MATERIALIZED (
    SELECT newest.*, NOT lane.of_key OR EXISTS (
               SELECT FROM rota.log AS job WHERE job.lane = newest.lane) AS kept,
           lane.queue, lane.priority
    FROM rota.cursor_newest AS newest
    CROSS JOIN LATERAL (
        SELECT lane.queue, lane.priority, lane.of_key FROM rota.lane
        WHERE lane.id = newest.lane LIMIT 1
    ) AS lane
    WHERE newest.slot <> (SELECT last_value % 2 FROM rota.cursor_turn)
), left_out AS (
    INSERT INTO rota.tally (slot, lane, state, jobs)
    SELECT (SELECT last_value % 2 FROM rota.tally_turn), plain.id, 'claimed', out.jobs
    FROM (
        SELECT queue, priority, sum(taken) AS jobs FROM place
        WHERE NOT kept AND taken > 0 GROUP BY queue, priority
    ) AS out
    JOIN rota.lane AS plain
      ON plain.queue = out.queue AND plain.priority = out.priority AND NOT plain.of_key
)
INSERT INTO rota.cursor (slot, lane, seq, xid, id, taken, hole_xids, hole_ids)
SELECT (SELECT last_value % 2 FROM rota.cursor_turn), lane, seq + 1, xid, id, taken, hole_xids, hole_ids
FROM place WHERE kept
