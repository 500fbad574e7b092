-- Whether the minute that is over is not in the history. Locks nothing. Walks: rota_history by its
-- primary key, one probe.
SELECT coalesce((SELECT max(minute) FROM rota_history WHERE queue = '')
                <> CAST((julianday('now') - 2440587.5) * 1440.0 AS INTEGER) - 1, 1);
