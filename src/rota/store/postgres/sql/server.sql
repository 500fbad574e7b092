-- Whether this server takes writes.
SELECT pg_is_in_recovery(), current_setting('server_version')
