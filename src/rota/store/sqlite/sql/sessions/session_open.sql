-- Register a worker, with its first sign of life.
WITH moment (now) AS (SELECT (julianday('now') - 2440587.5) * 86400.0)
INSERT INTO rota_session (host, pid, queues, timeout, opened_at, renewed_at, tasks)
SELECT :host, :pid, :queues, :timeout, now, now, :tasks FROM moment
WHERE true
RETURNING id;
