-- Start the mark of flows again, as origin_signal_mark.sql that of signals.
INSERT INTO rota.flow_mark (seq, snapshot)
SELECT max(seq) + 1,
       (pg_snapshot_xmin(pg_current_snapshot()) || ':' || pg_snapshot_xmin(pg_current_snapshot()) || ':')::pg_snapshot
FROM rota.flow_mark
