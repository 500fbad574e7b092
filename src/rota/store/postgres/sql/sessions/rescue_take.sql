-- Take the leases of locked sessions that are still without a sign of life: a renewal may have
-- been committed after the snapshot of rescue_lock.sql. Leases that a transaction has locked are left
-- for the next rescue: a prepared transaction may last for days. Gives, for each session, its worker,
-- the jobs taken, and whether leases are left.
-- Locks leases by their ids' order, as settlements do; waits for no lock.
WITH dead AS MATERIALIZED (
    SELECT session.id, session.host, session.pid FROM rota.session
    CROSS JOIN LATERAL (
        SELECT now, now - session.timeout AS since FROM clock_timestamp() AS now) AS silence
    WHERE session.id = ANY (%(sessions)s::int8[]) AND NOT EXISTS (
        SELECT FROM rota.heartbeat
        WHERE heartbeat.session = session.id AND heartbeat.at > silence.since
          AND heartbeat.at <= silence.now)
), held AS MATERIALIZED (
    SELECT lease.id FROM rota.lease
    WHERE lease.session = ANY (ARRAY(SELECT id FROM dead))
    ORDER BY lease.id FOR UPDATE SKIP LOCKED
), taken AS (
    DELETE FROM rota.lease USING held WHERE lease.id = held.id
    RETURNING lease.session, lease.jobs
)
SELECT dead.id, dead.host || ':' || dead.pid,
       coalesce(array_agg(job) FILTER (WHERE job IS NOT NULL), '{}'),
       EXISTS (
           SELECT FROM rota.lease WHERE lease.session = dead.id
             AND NOT EXISTS (SELECT FROM held WHERE held.id = lease.id))
FROM dead
LEFT JOIN taken ON taken.session = dead.id
LEFT JOIN LATERAL unnest(taken.jobs) AS job ON true
GROUP BY dead.id, dead.host, dead.pid
