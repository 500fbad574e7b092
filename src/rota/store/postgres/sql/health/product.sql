-- The server's version. Locks nothing.
SELECT current_setting('server_version')
