-- settle_finish.sql for jobs of which nothing shall be kept: it removes them.
DELETE FROM rota_job
WHERE id IN (SELECT value FROM json_each(:jobs))
  AND +lease = :lease
  AND +session = :session;
