-- End sessions without a sign of life for longer than their timeout, if that was noted a while ago
-- (see rescue_notice.sql); gives these sessions.
-- Locks: the database, so a renewal comes either before or too late. Walks: rota_session_alive.
WITH moment (now) AS (SELECT (julianday('now') - 2440587.5) * 86400.0)
UPDATE rota_session INDEXED BY rota_session_alive
SET ended_at = (SELECT now FROM moment)
WHERE ended_at IS NULL
  AND (SELECT now FROM moment) NOT BETWEEN renewed_at AND renewed_at + timeout
  AND silent_at + timeout * 0.4 <= (SELECT now FROM moment)
RETURNING id, host || ':' || pid;
