-- Have on disk what was committed before, by an empty message in the log of changes; its commit waits
-- for the disk. No lock is held meanwhile.
SELECT pg_logical_emit_message(true, 'rota', '')
