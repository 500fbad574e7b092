-- Sessions remember the server's timeline: after a failover to a standby that lacked the last commits, ids of
-- jobs, leases and sessions that were lost are given a second time.

-- The timeline of this server, which a failover changes, and so does a restore to an earlier moment. Not on a
-- standby.
CREATE VIEW rota.here AS
SELECT ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer AS timeline;

-- The timeline on which sessions were opened last; 0: not known.
CREATE SEQUENCE rota.timeline AS integer MINVALUE 0 START 0;

-- On which timeline the session was opened; null: by an older Rota.
ALTER TABLE rota.session ADD COLUMN timeline integer;
