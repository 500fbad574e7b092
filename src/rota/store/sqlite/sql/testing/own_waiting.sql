-- Whether there are jobs after this one that may be available or due; `but` is a JSON array. Locks
-- nothing. Walks: rota_job by its primary key.
SELECT EXISTS (
    SELECT 1 FROM rota_job
    WHERE id > :after AND id NOT IN (SELECT value FROM json_each(:but))
      AND NOT (json_extract(headers, '$."rota.node"') IS NOT NULL AND scheduled_at IS NOT NULL
               AND scheduled_at > (julianday('now') - 2440587.5) * 86400.0 + 50 * 31557600.0)
      AND (+state = 'available'
           OR scheduled_at <= CASE WHEN :due THEN (julianday('now') - 2440587.5) * 86400.0 ELSE 9e999 END));
