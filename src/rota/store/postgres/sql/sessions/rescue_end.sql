-- End the connections of workers that were frozen while they received what they had claimed. What
-- does not fit into the buffers on the way keeps the transaction open: it holds the session's row,
-- so that no rescue can lock it, and the lane; no timeout of the server counts there.
-- Only where a silent session cannot be locked, and of transactions older than its timeout; not
-- those of a role that this one may not end.
SELECT pg_terminate_backend(pid, 1000)
FROM (
    SELECT DISTINCT activity.pid
    FROM rota.session
    JOIN pg_stat_activity AS activity
        ON activity.wait_event = 'ClientWrite' AND pg_has_role(activity.usesysid, 'USAGE')
       AND activity.xact_start < clock_timestamp() - session.timeout
    JOIN pg_locks AS held
        ON held.pid = activity.pid AND held.relation = 'rota.session'::regclass
       AND held.mode = 'RowShareLock' AND held.granted
       AND held.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    CROSS JOIN LATERAL (
        SELECT now, now - session.timeout AS since FROM clock_timestamp() AS now) AS silence
    WHERE session.id <> ALL (%(locked)s::int8[]) AND NOT EXISTS (
        SELECT FROM rota.heartbeat
        WHERE heartbeat.session = session.id AND heartbeat.at > silence.since
          AND heartbeat.at <= silence.now OFFSET 0)
) AS stuck
