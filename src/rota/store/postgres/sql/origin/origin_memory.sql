-- Give signals and waits this cluster's numbers, so that they are compared once.
UPDATE rota.memory SET xid = pg_current_xact_id() WHERE xid IS NOT NULL
