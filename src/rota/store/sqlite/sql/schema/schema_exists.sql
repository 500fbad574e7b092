-- Whether this database has Rota's tables.
SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'rota_schema';
