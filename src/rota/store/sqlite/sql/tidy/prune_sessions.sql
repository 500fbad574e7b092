-- Remove a batch of sessions that ended more than a day ago and hold nothing; gives their ids.
-- Locks: the database. Walks: rota_session by its primary key.
DELETE FROM rota_session
WHERE id IN (
    SELECT id FROM rota_session
    WHERE ended_at < (julianday('now') - 2440587.5) * 86400.0 - 86400.0
    LIMIT :size
)
RETURNING id;
