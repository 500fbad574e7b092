-- In how many seconds the next job is due; walks timer_due from the newest mark on.
SELECT extract(epoch FROM timer.run_at - clock_timestamp())::float8
FROM rota.timer
WHERE (timer.run_at, timer.id) > (
    (SELECT run_at FROM rota.timer_mark ORDER BY seq DESC LIMIT 1),
    (SELECT id FROM rota.timer_mark ORDER BY seq DESC LIMIT 1))
ORDER BY timer.run_at, timer.id LIMIT 1
