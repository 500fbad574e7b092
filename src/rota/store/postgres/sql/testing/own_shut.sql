-- The lanes of keys in which this transaction has jobs, and whose limits have no place. Locks
-- nothing. Walks lane_keyed, and log_order in each of these lanes.
SELECT lane.id
FROM rota.lane
WHERE lane.limit_id <> 0
  AND EXISTS (SELECT FROM rota.log WHERE log.lane = lane.id AND log.xid = pg_current_xact_id())
  AND NOT EXISTS (SELECT FROM rota.lane_open WHERE lane_open.lane = lane.id)
