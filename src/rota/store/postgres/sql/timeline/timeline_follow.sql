-- Leave out the ids that were given before a failover and are lost: there were fewer than these.
-- Where the timeline was not known, nothing is left out.
-- Sequences know no transaction: the lock of timeline_lock.sql is held, and claims wait for a
-- session of this timeline.
SELECT CASE WHEN timeline.last_value > 0
            THEN setval('rota.lease_id', lease.last_value + 4294967296) END,
       CASE WHEN timeline.last_value > 0
            THEN setval('rota.session_id_seq', session.last_value + 1000) END,
       setval('rota.timeline', here.timeline)
FROM rota.here, rota.timeline, rota.lease_id AS lease, rota.session_id_seq AS session
