-- Workers, when they were last heard of, and what they hold. Reads each session's end of
-- heartbeat_order; leases are few.
SELECT session.id, session.host || ':' || session.pid, session.queues,
       extract(epoch FROM session.timeout)::float8,
       extract(epoch FROM clock_timestamp() - coalesce((
           SELECT heartbeat.at FROM rota.heartbeat WHERE heartbeat.session = session.id
           ORDER BY heartbeat.session DESC, heartbeat.at DESC LIMIT 1
       ), session.started_at))::float8,
       held.jobs::int8, extract(epoch FROM clock_timestamp() - held.since)::float8,
       extract(epoch FROM clock_timestamp() - session.started_at)::float8
FROM rota.session
CROSS JOIN LATERAL (
    SELECT coalesce(sum(cardinality(lease.jobs)), 0) AS jobs, min(lease.claimed_at) AS since
    FROM rota.lease WHERE lease.session = session.id
) AS held
ORDER BY session.id
