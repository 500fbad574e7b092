-- Start every lane's cursor again, before everything.
INSERT INTO rota.cursor (slot, lane, seq, xid, id, hole_xids, hole_ids)
SELECT (SELECT last_value % 2 FROM rota.cursor_turn), place.lane, place.seq + 1, '0', 0, '{}', '{}'
FROM rota.lane
CROSS JOIN LATERAL (
    SELECT place.lane, place.seq FROM rota.cursor AS place WHERE place.lane = lane.id
    ORDER BY place.lane DESC, place.seq DESC LIMIT 1
) AS place
