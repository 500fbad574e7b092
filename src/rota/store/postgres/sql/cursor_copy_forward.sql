-- Repeat the newest cursor entry of every lane in the current table. All lanes are locked.
INSERT INTO rota.cursor (slot, lane, seq, xid, id, taken, hole_xids, hole_ids)
SELECT (SELECT last_value % 2 FROM rota.cursor_turn), place.lane, place.seq + 1, place.xid,
       place.id, place.taken, place.hole_xids, place.hole_ids
FROM rota.lane
CROSS JOIN LATERAL (
    SELECT place.* FROM rota.cursor AS place WHERE place.lane = lane.id
    ORDER BY place.lane DESC, place.seq DESC LIMIT 1
) AS place
WHERE place.slot <> (SELECT last_value % 2 FROM rota.cursor_turn)
