-- Have on disk what was committed before, by an empty message in the log of changes; its commit
-- waits for the disk, also where the server's own settings do without. No lock is held meanwhile.
SELECT pg_logical_emit_message(true, 'rota', ''),
       set_config('synchronous_commit', CASE current_setting('synchronous_commit')
           WHEN 'off' THEN 'local' ELSE current_setting('synchronous_commit') END, true)
