-- Note which sessions have missed several renewals. They have two heartbeats more to renew: perhaps
-- the file was locked in the meantime, or the machine was asleep, or its clock has jumped. What
-- lies in the future is from before the clock was set back, and says nothing.
-- Locks: the database. Walks: rota_session_alive.
WITH moment (now) AS (SELECT (julianday('now') - 2440587.5) * 86400.0)
UPDATE rota_session INDEXED BY rota_session_alive
SET silent_at = (SELECT now FROM moment)
WHERE ended_at IS NULL
  AND (silent_at IS NULL OR silent_at > (SELECT now FROM moment))
  AND (SELECT now FROM moment) NOT BETWEEN renewed_at AND renewed_at + timeout * 0.6;
