-- The server and this connection. Reads the catalogs and the statistics, and locks nothing.
SELECT current_setting('server_version_num')::int4, current_setting('server_version'),
       current_database(), current_user::text, pg_is_in_recovery(),
       pg_has_role(current_user, 'pg_read_all_stats', 'USAGE'),
       extract(epoch FROM clock_timestamp())::float8,
       (SELECT sum(numbackends) FROM pg_stat_database)::int8,
       pg_notification_queue_usage(),
       (SELECT age(datfrozenxid) FROM pg_database WHERE datname = current_database())::int8
