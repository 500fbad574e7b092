-- What is idle costs nothing, however much of it there is, and what is old is removed without walking dead rows.
-- Expands: older code goes on removing what is old as it did, and looks at fewer lanes.

-- Whether tables were restored here from a dump, asked with each sign of life: only lanes with rows in the log
-- are looked at, up to a thousand. A queue for each of ten thousand tenants cost every worker tens of milliseconds each time.
CREATE OR REPLACE VIEW rota.restored AS
SELECT EXISTS (
        SELECT FROM rota.origin, pg_control_system() AS here
        WHERE origin.system_identifier <> here.system_identifier)
    OR coalesce((
        SELECT pg_snapshot_xmax(mark.snapshot) > pg_snapshot_xmax(pg_current_snapshot())
        FROM rota.tally_mark AS mark ORDER BY mark.seq DESC LIMIT 1), false)
    OR coalesce((
        SELECT pg_snapshot_xmax(mark.snapshot) > pg_snapshot_xmax(pg_current_snapshot())
        FROM rota.timer_mark AS mark ORDER BY mark.seq DESC LIMIT 1), false)
    OR EXISTS (
        WITH RECURSIVE used AS (
            (SELECT job.lane FROM rota.log AS job ORDER BY job.lane, job.xid, job.id LIMIT 1)
            UNION ALL
            SELECT next.lane FROM used
            CROSS JOIN LATERAL (
                SELECT job.lane FROM rota.log AS job WHERE job.lane > used.lane
                ORDER BY job.lane, job.xid, job.id LIMIT 1
            ) AS next
        )
        SELECT FROM (SELECT lane FROM used LIMIT 1000) AS used
        CROSS JOIN LATERAL (
            SELECT place.xid FROM rota.cursor AS place WHERE place.lane = used.lane
            ORDER BY place.lane DESC, place.seq DESC LIMIT 1
        ) AS place
        WHERE place.xid >= pg_snapshot_xmax(pg_current_snapshot())) AS sure;

-- Up to which second signs of life, unique keys past their period, and discarded jobs past their retention have
-- been removed.
CREATE SEQUENCE rota.heartbeat_trimmed MINVALUE 0 START 0;
CREATE SEQUENCE rota.key_trimmed MINVALUE 0 START 0;
CREATE SEQUENCE rota.discarded_pruned MINVALUE 0 START 0;
