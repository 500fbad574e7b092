-- Sessions without a sign of life for longer than their timeout, locked so that neither they nor
-- another rescuer can act for them. A session that is renewing or claiming just now is skipped.
-- Walks heartbeat_order from each session's right end.
SELECT session.id FROM rota.session
WHERE NOT EXISTS (
    SELECT FROM rota.heartbeat
    WHERE heartbeat.session = session.id
      AND heartbeat.at > clock_timestamp() - session.timeout)
ORDER BY session.id
FOR UPDATE SKIP LOCKED
