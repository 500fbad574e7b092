-- Let a flow that was opened again be stopped at its deadline, unless that has passed.
-- Locks: the database.
INSERT INTO rota_flow_stop (flow, since, next, reason)
SELECT id, deadline, deadline, :reason FROM rota_flow
WHERE id = :flow AND deadline > (julianday('now') - 2440587.5) * 86400.0
ON CONFLICT DO NOTHING;
