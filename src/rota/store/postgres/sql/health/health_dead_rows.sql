-- Rows of all tables of this database that wait for vacuum, by the server's statistics.
SELECT coalesce(sum(n_dead_tup), 0)::int8 FROM pg_stat_all_tables
