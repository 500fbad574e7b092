-- Let a flow be cancelled from now on, unless it has ended; gives it.
INSERT INTO rota.flow_stop AS stop (flow, since, next, reason)
SELECT flow.id, clock_timestamp(), clock_timestamp(), %(reason)s::text FROM rota.flow
WHERE flow.id = %(flow)s::int8
  AND NOT EXISTS (SELECT FROM rota.flow_end AS ended WHERE ended.flow = flow.id AND ended.round = flow.round)
ON CONFLICT (flow) DO UPDATE
    SET since = least(stop.since, excluded.since), next = excluded.next,
        reason = CASE WHEN stop.since <= excluded.since THEN stop.reason ELSE excluded.reason END
RETURNING flow
