-- Give lanes that have none their first cursor entry, before everything. Whoever does this has the turn
-- of the keyed lanes, so nobody else does, and no table of the cursor is being emptied.
INSERT INTO rota.cursor (slot, lane, seq, xid, id, taken, hole_xids, hole_ids)
SELECT (SELECT last_value %% 2 FROM rota.cursor_turn), lane.id, 0, '0', 0, 0, '{}', '{}'
FROM unnest(%(lanes)s::int4[]) AS lane (id)
WHERE NOT EXISTS (SELECT FROM rota.cursor WHERE cursor.lane = lane.id)
