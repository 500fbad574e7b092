-- A sign of life; gives nothing where the session has ended or was rescued.
UPDATE rota_session
SET renewed_at = (julianday('now') - 2440587.5) * 86400.0, silent_at = NULL
WHERE id = :session AND ended_at IS NULL
RETURNING id;
