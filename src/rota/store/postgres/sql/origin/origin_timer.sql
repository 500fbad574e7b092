-- Give waiting jobs this cluster's numbers: with transaction ids that are still to come every
-- staging would look at all of them.
UPDATE rota.timer SET xid = pg_current_xact_id()
WHERE xid >= pg_snapshot_xmax(pg_current_snapshot())
