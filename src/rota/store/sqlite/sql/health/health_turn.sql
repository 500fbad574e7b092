-- A turn at writing that writes nothing. SQLite lets a transaction begin on a read-only file, too;
-- a statement that might write is refused there.
DELETE FROM rota_schema WHERE false;
