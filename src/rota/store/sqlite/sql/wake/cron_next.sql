-- In how many seconds the next entry is due (negative: it is overdue), and the next one that is not
-- overdue; null if none is.
-- Locks nothing. Walks rota_cron_entry, which has few rows.
SELECT min(due) - moment.now, min(CASE WHEN due > moment.now THEN due END) - moment.now
FROM (SELECT (julianday('now') - 2440587.5) * 86400.0 AS now) AS moment
CROSS JOIN rota_cron
WHERE NOT paused AND NOT undeclared;
