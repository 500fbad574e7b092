-- Forget that a flow was to be stopped, where it has ended or is gone.
DELETE FROM rota.flow_stop AS stop
WHERE stop.flow = %(flow)s::int8 AND NOT EXISTS (
    SELECT FROM rota.flow WHERE flow.id = stop.flow AND NOT EXISTS (
        SELECT FROM rota.flow_end AS ended WHERE ended.flow = flow.id AND ended.round = flow.round))
