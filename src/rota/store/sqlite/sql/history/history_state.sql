-- Which minute is over, since 1970, and the newest one that was recorded (null: there is none).
-- Locks nothing. Walks: rota_history by its primary key, one probe.
SELECT CAST((julianday('now') - 2440587.5) * 1440.0 AS INTEGER) - 1,
       (SELECT max(minute) FROM rota_history WHERE queue = '');
