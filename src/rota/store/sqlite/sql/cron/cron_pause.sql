-- Pause or resume an entry; gives nothing where nothing changes.
-- Locks: the database.
UPDATE rota_cron_entry SET paused = :paused WHERE name = :name AND paused <> :paused
RETURNING id;
