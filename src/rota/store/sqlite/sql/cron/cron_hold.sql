-- Begin to change entries (a JSON array of names); gives what the code said of each last.
-- Locks: the database. An update, since on a caller's connection it begins the transaction.
UPDATE rota_cron_entry SET seq = seq WHERE name IN (SELECT value FROM json_each(:names))
RETURNING name, declaration;
