-- Let a flow that was opened again be stopped at its deadline, unless that has passed.
INSERT INTO rota.flow_stop (flow, since, next, reason)
SELECT id, deadline, deadline, %(reason)s::text FROM rota.flow
WHERE id = %(flow)s::int8 AND deadline > clock_timestamp()
ON CONFLICT DO NOTHING
