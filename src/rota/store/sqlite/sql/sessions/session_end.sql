-- End a session in order; gives nothing where it has ended before.
UPDATE rota_session
SET ended_at = (julianday('now') - 2440587.5) * 86400.0
WHERE id = :session AND ended_at IS NULL
RETURNING id;
