-- Say how far an entry has come.
-- Locks: the database.
UPDATE rota_cron_entry SET seq = :seq, since = :since, due = :due, last = :last
WHERE id = :entry
RETURNING id;
