-- Take the leases of locked sessions that are still without a sign of life: a renewal may have been
-- committed after the snapshot of rescue_lock.sql. Leases that a transaction has locked are left
-- for the next rescue: a prepared transaction may last for days. Gives, for each session, its
-- worker, the jobs taken that may have begun, those that had not, and whether leases are left.
-- Suspects begin only in a lot.
-- Locks leases by their ids' order, as settlements do; waits for no lock.
WITH dead AS MATERIALIZED (
    SELECT session.id, session.host, session.pid FROM rota.session
    CROSS JOIN LATERAL (
        SELECT now, now - session.timeout AS since FROM clock_timestamp() AS now) AS silence
    WHERE session.id = ANY (%(sessions)s::int8[]) AND NOT EXISTS (
        SELECT FROM rota.heartbeat
        WHERE heartbeat.session = session.id AND heartbeat.at > silence.since
          AND heartbeat.at <= silence.now OFFSET 0)
), held AS MATERIALIZED (
    SELECT lease.id FROM rota.lease
    WHERE lease.session = ANY (ARRAY(SELECT id FROM dead))
    ORDER BY lease.id FOR UPDATE SKIP LOCKED
), taken AS (
    DELETE FROM rota.lease USING held WHERE lease.id = held.id
    RETURNING lease.session, lease.jobs
)
SELECT dead.id, dead.host || ':' || dead.pid,
       coalesce(array_agg(job.id) FILTER (WHERE job.begun), '{}'),
       coalesce(array_agg(job.id) FILTER (WHERE NOT job.begun), '{}'),
       EXISTS (
           SELECT FROM rota.lease WHERE lease.session = dead.id
             AND NOT EXISTS (SELECT FROM held WHERE held.id = lease.id))
FROM dead
LEFT JOIN taken ON taken.session = dead.id
LEFT JOIN rota.lot ON lot.session = dead.id
LEFT JOIN LATERAL (
    SELECT held.id, coalesce(held.id = ANY (lot.jobs), false)
           OR entry.errors IS NULL OR NOT entry.errors -> -1 ? 'suspects' AS begun
    FROM unnest(taken.jobs) AS held (id)
    CROSS JOIN LATERAL (
        SELECT entry.errors FROM rota.log AS entry WHERE entry.id = held.id
        ORDER BY entry.id DESC, entry.entry DESC LIMIT 1
    ) AS entry
) AS job ON true
GROUP BY dead.id, dead.host, dead.pid
