-- End jobs (a JSON array of ids) alike, which settle_held.sql has found. The fence is in here, too:
-- a caller's connection may have no transaction around the two.
-- Locks: the database. Walks: rota_job by its primary key, see settle_held.sql.
UPDATE rota_job
SET state = :state, finished_at = :now, keep_until = :until, lease = NULL, session = NULL, cancel_requested = 0
WHERE id IN (SELECT value FROM json_each(:jobs))
  AND +lease = :lease
  AND +session = :session;
