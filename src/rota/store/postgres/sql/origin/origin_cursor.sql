-- Start every lane's cursor again, before everything; what it has handed out goes on counting.
INSERT INTO rota.cursor (slot, lane, seq, xid, id, taken, hole_xids, hole_ids)
SELECT (SELECT last_value % 2 FROM rota.cursor_turn), place.lane, place.seq + 1, '0', 0, place.taken,
       '{}', '{}'
FROM rota.cursor_newest AS place
