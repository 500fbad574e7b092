-- The files that this connection reaches: its own, and those that were attached; "" for a database
-- in memory.
-- It locks and reads nothing.
PRAGMA database_list;
