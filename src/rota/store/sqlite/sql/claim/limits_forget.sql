-- Forget starts that lie in their limit's window no more, of these limits (a JSON array of [limit,
-- jobs]).
-- Walks: rota_limit_start_order from each limit's first entry on.
DELETE FROM rota_limit_start
WHERE rowid IN (
    SELECT start.rowid
    FROM json_each(:starts) AS started
    CROSS JOIN rota_limit ON rota_limit.id = json_extract(started.value, '$[0]')
    CROSS JOIN rota_limit_start AS start ON start.limit_id = rota_limit.id
    WHERE start.at <= (julianday('now') - 2440587.5) * 86400.0 - rota_limit.rate_seconds);
