-- Forget old signs of life. The newest of a living session is never that old; and a session without any
-- counts as silent, like one whose newest is old.
DELETE FROM rota.heartbeat USING rota.session
WHERE heartbeat.session = session.id
  AND heartbeat.at < clock_timestamp() - greatest(4 * session.timeout, interval '1 minute')
