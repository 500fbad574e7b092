-- Let a flow be cancelled from now on, unless it has ended; gives it.
INSERT INTO rota_flow_stop (flow, since, next, reason)
SELECT flow.id, moment.now, moment.now, :reason
FROM rota_flow AS flow CROSS JOIN (SELECT (julianday('now') - 2440587.5) * 86400.0 AS now) AS moment
WHERE flow.id = :flow
  AND NOT EXISTS (SELECT 1 FROM rota_flow_end AS ended WHERE ended.flow = flow.id AND ended.round = flow.round)
ON CONFLICT (flow) DO UPDATE
    SET reason = CASE WHEN rota_flow_stop.since <= excluded.since THEN rota_flow_stop.reason ELSE excluded.reason END,
        since = min(rota_flow_stop.since, excluded.since), next = excluded.next
RETURNING flow;
