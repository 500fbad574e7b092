-- Start the timer's mark again, before everything.
INSERT INTO rota.timer_mark (seq, run_at, id, snapshot)
SELECT max(seq) + 1, '-infinity', 0, pg_current_snapshot() FROM rota.timer_mark
