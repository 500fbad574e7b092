-- Give what was written of flows this cluster's numbers, so that it is looked at once.
WITH arrival AS (
    UPDATE rota.flow_arrival SET xid = pg_current_xact_id()
)
UPDATE rota.flow_fact SET xid = pg_current_xact_id()
