-- Whether a session has neither ended nor been rescued. Locks nothing.
SELECT 1 FROM rota_session WHERE id = :session AND ended_at IS NULL;
