-- Begin the cursors of plain lanes that have none: a dump that was made while a ring turned may
-- lack them.
-- What was handed out there is not known any more. All lanes are locked.
INSERT INTO rota.cursor (slot, lane, seq, xid, id, taken, hole_xids, hole_ids)
SELECT (SELECT last_value % 2 FROM rota.cursor_turn), lane.id, 0, '0', 0, 0, '{}', '{}'
FROM rota.lane
WHERE NOT lane.of_key AND NOT EXISTS (SELECT FROM rota.cursor WHERE cursor.lane = lane.id)
