-- What keeps vacuum from removing rows of this database's tables, or has locked a segment of one of
-- Rota's rings. Reads the server's own lists; locks nothing.
-- Sessions in other databases do not count (ComputeXidHorizons, procarray.c), nor does a vacuum;
-- slots and standbys count everywhere. A parallel worker is named by its leader. In pg_locks a
-- prepared transaction has no process; its other locks are found by the one on its own id.
WITH touching AS MATERIALIZED (
    SELECT coalesce(lock.pid::text, lock.virtualtransaction) AS holder,
           array_agg(DISTINCT segment.relname::text) AS segments
    FROM pg_locks AS lock
    JOIN pg_class AS segment ON segment.oid = lock.relation
    JOIN pg_namespace AS schema ON schema.oid = segment.relnamespace
    WHERE lock.granted AND schema.nspname = 'rota'
      AND segment.relkind = 'r' AND segment.relispartition
      AND lock.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    GROUP BY 1
)
SELECT CASE WHEN EXISTS (SELECT FROM pg_stat_replication AS sender WHERE sender.pid = session.pid)
            THEN 'standby' ELSE 'session' END,
       session.pid, session.application_name, session.usename::text, session.state,
       extract(epoch FROM clock_timestamp() - session.xact_start)::float8,
       greatest(age(session.backend_xmin), age(session.backend_xid))::int8, NULL::int8,
       session.backend_xid IS NOT NULL, touching.segments, true, NULL::int8
FROM pg_stat_activity AS session
LEFT JOIN touching ON touching.holder = session.pid::text
WHERE session.pid <> pg_backend_pid()
  AND (session.datname = current_database() OR session.datname IS NULL)
  AND (session.backend_xmin IS NOT NULL OR session.backend_xid IS NOT NULL
       OR touching.holder IS NOT NULL)
  AND session.pid NOT IN (SELECT pid FROM pg_stat_progress_vacuum)
  AND session.backend_type IS DISTINCT FROM 'parallel worker'
UNION ALL
SELECT 'prepared', NULL, prepared.gid, prepared.owner::text, 'prepared',
       extract(epoch FROM clock_timestamp() - prepared.prepared)::float8,
       age(prepared.transaction)::int8, NULL, true, touching.segments, true, NULL
FROM pg_prepared_xacts AS prepared
LEFT JOIN pg_locks AS own
  ON own.locktype = 'transactionid' AND own.transactionid = prepared.transaction
 AND own.granted AND own.pid IS NULL
LEFT JOIN touching ON touching.holder = own.virtualtransaction
WHERE prepared.database = current_database()
UNION ALL
SELECT 'slot', active_pid, slot_name::text, '', slot_type, NULL,
       age(xmin)::int8, age(catalog_xmin)::int8, false, NULL, active,
       CASE WHEN NOT pg_is_in_recovery()
            THEN pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::int8 END
FROM pg_replication_slots
WHERE xmin IS NOT NULL OR catalog_xmin IS NOT NULL OR restart_lsn IS NOT NULL
