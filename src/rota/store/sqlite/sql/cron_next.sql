-- In how many seconds the next entry is due (negative: it is overdue); null if none is.
-- Locks nothing. Walks rota_cron_entry, which has few rows.
SELECT min(due) - (julianday('now') - 2440587.5) * 86400.0
FROM rota_cron
WHERE NOT paused AND NOT undeclared;
