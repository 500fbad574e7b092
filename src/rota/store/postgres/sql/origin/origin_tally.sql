-- Count anew: all that this snapshot sees in the timer and among the finished jobs stands in for
-- the rows that said how it came to be. The table of marks is locked, so that no session squeezes
-- meanwhile.
WITH gone AS (
    DELETE FROM rota.tally
)
INSERT INTO rota.tally (slot, lane, state, expires, jobs)
SELECT (SELECT last_value % 2 FROM rota.tally_turn), lane,
       CASE WHEN state = 'available' THEN 'appended' ELSE state END, 'infinity', count(*)
FROM rota.timer
WHERE unique_key IS NULL OR coalesce((
    SELECT true FROM rota.unique_key AS held
    WHERE held.key = timer.unique_key AND held.task = timer.task AND held.job = timer.id
      AND held.entry = timer.entry), false)
GROUP BY lane, state
UNION ALL
SELECT (SELECT last_value % 2 FROM rota.tally_turn), lane.id, kind.state, kind.keep_until, kind.jobs
FROM (
    SELECT queue, priority, state, keep_until, count(*) AS jobs FROM rota.finished
    GROUP BY queue, priority, state, keep_until
) AS kind
JOIN rota.lane ON lane.queue = kind.queue AND lane.priority = kind.priority AND NOT lane.of_key
