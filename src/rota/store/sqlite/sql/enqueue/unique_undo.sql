-- Give back these keys (a JSON array), which were taken for jobs that are not stored after all.
-- Locks: the database. Walks: rota_unique by its primary key.
DELETE FROM rota_unique
WHERE key IN (SELECT value FROM json_each(:keys)) AND task = :task AND job IS NULL;
