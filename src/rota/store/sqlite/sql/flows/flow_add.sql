-- Store a flow.
INSERT INTO rota_flow (name, created_at, deadline, keep)
SELECT :name, now, now + :deadline, :keep FROM (SELECT (julianday('now') - 2440587.5) * 86400.0 AS now)
WHERE true
RETURNING id, deadline;
