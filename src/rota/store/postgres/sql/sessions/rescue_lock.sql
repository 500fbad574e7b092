-- Sessions without a sign of life for longer than their timeout, locked so that neither they nor
-- another rescuer can act for them. A session that is renewing or claiming just now is skipped.
-- While the server was down no session could give a sign: none is silent since before its start.
-- What lies in the future is from before the clock was set back, and says nothing. Nor could a
-- session of another timeline give a sign before the failover: it is silent since a session of this
-- one was opened.
-- Walks heartbeat_order from `since` on: older signs, dead ones too, are not looked at. (Without
-- OFFSET 0, PostgreSQL 14 would look at them.)
SELECT session.id FROM rota.session
CROSS JOIN LATERAL (
    SELECT now, now - session.timeout AS since FROM clock_timestamp() AS now) AS silence
WHERE pg_postmaster_start_time() NOT BETWEEN silence.since AND silence.now
  AND NOT EXISTS (
    SELECT FROM rota.heartbeat
    WHERE heartbeat.session = session.id AND heartbeat.at > silence.since
      AND heartbeat.at <= silence.now OFFSET 0)
  AND (session.timeline IS NULL OR EXISTS (
    SELECT FROM rota.here JOIN rota.session AS new ON new.timeline = here.timeline
    WHERE here.timeline = session.timeline OR new.started_at < silence.since))
ORDER BY session.id
FOR UPDATE OF session SKIP LOCKED
