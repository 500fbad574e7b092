-- The nodes of flows at which jobs have arrived in this transaction. Locks nothing. Walks
-- flow_arrival_xid.
SELECT DISTINCT node FROM rota.flow_arrival WHERE xid = pg_current_xact_id()
