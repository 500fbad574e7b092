-- Forget which entries were declared by workers that are gone.
-- Locks: the database.
DELETE FROM rota_cron_worker
WHERE NOT EXISTS (
    SELECT 1 FROM rota_session AS session
    WHERE session.id = rota_cron_worker.session AND session.ended_at IS NULL)
RETURNING session;
