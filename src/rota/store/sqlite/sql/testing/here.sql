-- The file of this connection; empty for a database in memory. Locks nothing.
SELECT file FROM pragma_database_list WHERE name = 'main';
