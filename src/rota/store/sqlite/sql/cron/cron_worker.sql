-- Note which entries (a JSON array of names) a worker declares.
-- Locks: the database.
INSERT INTO rota_cron_worker (session, entries) VALUES (:session, :names)
ON CONFLICT (session) DO UPDATE SET entries = excluded.entries
RETURNING session;
