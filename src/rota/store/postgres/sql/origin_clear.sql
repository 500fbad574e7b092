-- Remove log entries that were appended anew under this cluster's numbers.
DELETE FROM rota.log WHERE xid <> pg_current_xact_id()
