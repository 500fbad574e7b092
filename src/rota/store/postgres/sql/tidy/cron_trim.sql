-- Forget old marks of entries; the newest one counts. Walks the marks once a round, and there are few.
DELETE FROM rota.cron_mark AS old
USING (SELECT entry, max(seq) AS seq FROM rota.cron_mark GROUP BY entry) AS newest
WHERE old.entry = newest.entry AND old.seq < newest.seq
