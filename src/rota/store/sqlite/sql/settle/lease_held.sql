-- Whether a session still holds a job under a lease. Locks nothing. Walks rota_job by its primary
-- key.
SELECT 1 FROM rota_job WHERE id = :job AND +lease = :lease AND +session = :session;
