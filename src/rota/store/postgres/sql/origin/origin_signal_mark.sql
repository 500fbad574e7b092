-- Start the mark of signals again, so that all are compared whose transactions were not over: among
-- them the one that is writing this, and has given them its number, which a snapshot of its own
-- would count as seen.
INSERT INTO rota.signal_mark (seq, snapshot)
SELECT max(seq) + 1,
       (pg_snapshot_xmin(pg_current_snapshot()) || ':' || pg_snapshot_xmin(pg_current_snapshot()) || ':')::pg_snapshot
FROM rota.signal_mark
