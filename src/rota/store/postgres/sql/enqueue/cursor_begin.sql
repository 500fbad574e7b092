-- Give a lane its first cursor entry, before everything. The lane is locked.
INSERT INTO rota.cursor (slot, lane, seq, xid, id, taken, hole_xids, hole_ids)
SELECT (SELECT last_value %% 2 FROM rota.cursor_turn), %(lane)s::int4, 0, '0', 0, 0, '{}', '{}'
WHERE NOT EXISTS (SELECT FROM rota.cursor WHERE lane = %(lane)s::int4)
