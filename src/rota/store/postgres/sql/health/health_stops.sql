-- Flows that have been stopped for more than `least` seconds and have not ended; there are few.
-- Locks nothing. Walks flow_stop, and the keys of flow and flow_end.
SELECT flow.id, flow.name, extract(epoch FROM clock_timestamp() - stop.since)::float8
FROM rota.flow_stop AS stop JOIN rota.flow ON flow.id = stop.flow
WHERE stop.since < clock_timestamp() - make_interval(secs => %(least)s::float8) AND NOT EXISTS (
    SELECT FROM rota.flow_end AS ended WHERE ended.flow = flow.id AND ended.round = flow.round)
ORDER BY stop.since LIMIT 20
