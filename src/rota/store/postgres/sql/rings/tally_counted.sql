-- Whether the newest mark has counted all changes in one of the two tables. Walks tally_xid from
-- the mark's snapshot on.
SELECT NOT EXISTS (
    SELECT FROM (SELECT snapshot FROM rota.tally_mark ORDER BY seq DESC LIMIT 1) AS mark
    CROSS JOIN LATERAL (
        SELECT FROM rota.tally
        WHERE tally.slot = %(slot)s::int2 AND tally.xid >= pg_snapshot_xmin(mark.snapshot)
          AND NOT pg_visible_in_snapshot(tally.xid, mark.snapshot)
        LIMIT 1
    ) AS uncounted)
