-- Settings as a session of this role begins with them, in their base units; Rota's own connections
-- change some of them for themselves.
SELECT name, reset_val FROM pg_settings
WHERE name IN ('autovacuum', 'track_counts', 'fsync', 'full_page_writes', 'synchronous_commit',
               'idle_in_transaction_session_timeout', 'default_transaction_read_only',
               'max_connections', 'superuser_reserved_connections', 'reserved_connections',
               'max_slot_wal_keep_size')
