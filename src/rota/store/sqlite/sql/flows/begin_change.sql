-- Change nothing: with this statement sqlite3 begins the caller's transaction, if it has not begun.
-- Locks: the database.
UPDATE rota_flow SET round = round WHERE false;
