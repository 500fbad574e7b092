-- Whether there are jobs after this one that may be available or due; `but` is a JSON array. Locks nothing. Walks:
-- rota_job by its primary key.
SELECT EXISTS (
    SELECT 1 FROM rota_job
    WHERE id > :after AND id NOT IN (SELECT value FROM json_each(:but))
      AND (+state = 'available'
           OR scheduled_at <= CASE WHEN :due THEN (julianday('now') - 2440587.5) * 86400.0 ELSE 9e999 END));
