-- Remove an entry.
-- Locks: the database.
DELETE FROM rota_cron_entry WHERE name = :name
RETURNING id;
