-- Forget old marks of the timer; the newest one counts.
DELETE FROM rota.timer_mark WHERE seq < (SELECT max(seq) - 10 FROM rota.timer_mark)
