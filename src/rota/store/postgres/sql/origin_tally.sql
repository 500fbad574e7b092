-- Count anew: all that this snapshot sees in the timer and among the finished jobs stands in for the
-- rows that said how it came to be. The table of marks is locked, so nobody squeezes meanwhile.
WITH gone AS (
    DELETE FROM rota.tally
)
INSERT INTO rota.tally (slot, lane, state, expires, jobs)
SELECT (SELECT last_value % 2 FROM rota.tally_turn), lane, state, 'infinity', count(*)
FROM rota.timer GROUP BY lane, state
UNION ALL
SELECT (SELECT last_value % 2 FROM rota.tally_turn), lane.id, kind.state, kind.keep_until, kind.jobs
FROM (
    SELECT queue, priority, state, keep_until, count(*) AS jobs FROM rota.finished
    GROUP BY queue, priority, state, keep_until
) AS kind
JOIN rota.lane ON lane.queue = kind.queue AND lane.priority = kind.priority AND NOT lane.of_key
