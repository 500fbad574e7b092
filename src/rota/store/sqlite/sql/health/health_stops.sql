-- Flows that have been stopped for more than `least` seconds and have not ended; there are few.
-- Locks nothing. Walks rota_flow_stop, and the keys of rota_flow and rota_flow_end.
SELECT flow.id, flow.name, moment.now - stop.since
FROM (SELECT (julianday('now') - 2440587.5) * 86400.0 AS now) AS moment
CROSS JOIN rota_flow_stop AS stop
JOIN rota_flow AS flow ON flow.id = stop.flow
WHERE stop.since < moment.now - :least AND NOT EXISTS (
    SELECT 1 FROM rota_flow_end AS ended WHERE ended.flow = flow.id AND ended.round = flow.round)
ORDER BY stop.since LIMIT 20;
