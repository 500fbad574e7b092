-- Forget old signs of life; the newest one of each session is never that old while it lives, and
-- one that is missing altogether says the same as an old one.
DELETE FROM rota.heartbeat USING rota.session
WHERE heartbeat.session = session.id
  AND heartbeat.at < clock_timestamp() - greatest(4 * session.timeout, interval '1 minute')
