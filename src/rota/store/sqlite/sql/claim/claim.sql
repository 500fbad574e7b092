-- Lease these jobs (a JSON array of ids) to a session and spend an attempt of each.
-- Locks: the database; the ids were read in the same transaction, so they are still available.
-- Walks: rota_job by its primary key.
UPDATE rota_job
SET state = 'running', session = :session, lease = :lease, attempt = attempt + 1
WHERE id IN (SELECT value FROM json_each(:jobs)) AND +state = 'available';
