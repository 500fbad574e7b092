-- A session that came from another cluster claims nothing here: its worker has not noticed yet that its database moved.
-- Expands: older code reads the view as it did, and finds no session of its own there.

-- The timeline of this server, which a failover changes, and so does a restore to an earlier moment. Null where
-- the tables came from another cluster and no worker has anchored them yet: no session claims before that. Not on
-- a standby.
CREATE OR REPLACE VIEW rota.here AS
SELECT CASE WHEN origin.system_identifier = here.system_identifier
            THEN ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer END AS timeline
FROM rota.origin, pg_control_system() AS here;
