-- The lease under which a session holds a job, whichever that is. Locks nothing. Walks rota_job by
-- its primary key.
SELECT lease FROM rota_job WHERE id = :job AND +session = :session;
