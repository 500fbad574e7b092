-- What meets the rest of a production: publications, and dumps that are restored into a clone.

-- Tables without a primary key name their rows by all columns, so that under a publication they can still
-- be changed. Changes the catalog alone, under a short exclusive lock on each of these tables.
DO $$
DECLARE
    one regclass;
BEGIN
    FOR one IN
        SELECT entry.oid FROM pg_class AS entry
        WHERE entry.relnamespace = 'rota'::regnamespace AND entry.relkind IN ('r', 'p')
          AND NOT EXISTS (SELECT FROM pg_index WHERE indrelid = entry.oid AND indisprimary)
        ORDER BY entry.relname
    LOOP
        EXECUTE format('ALTER TABLE %s REPLICA IDENTITY FULL', one);
    END LOOP;
END
$$;

-- Whether the tables were restored here from a dump: the cluster has another name, or there are transaction
-- ids that are still to come here. A clone of a cluster's files has its name, and goes on from its ids.
-- Whatever a snapshot shows lies before its xmax. A few probes, of which none walks dead rows, for each
-- sign of life of a worker, in tables that are never locked for long; origin_check.sql looks at more when
-- a worker starts.
CREATE VIEW rota.restored AS
SELECT EXISTS (
        SELECT FROM rota.origin, pg_control_system() AS here
        WHERE origin.system_identifier <> here.system_identifier)
    OR coalesce((
        SELECT pg_snapshot_xmax(mark.snapshot) > pg_snapshot_xmax(pg_current_snapshot())
        FROM rota.tally_mark AS mark ORDER BY mark.seq DESC LIMIT 1), false)
    OR coalesce((
        SELECT pg_snapshot_xmax(mark.snapshot) > pg_snapshot_xmax(pg_current_snapshot())
        FROM rota.timer_mark AS mark ORDER BY mark.seq DESC LIMIT 1), false)
    OR coalesce((
        SELECT true FROM rota.lane
        CROSS JOIN LATERAL (
            SELECT place.xid FROM rota.cursor AS place WHERE place.lane = lane.id
            ORDER BY place.lane DESC, place.seq DESC LIMIT 1
        ) AS place
        WHERE NOT lane.of_key AND place.xid >= pg_snapshot_xmax(pg_current_snapshot())
        LIMIT 1), false) AS sure;
