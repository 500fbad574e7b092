-- End those of these flows (a JSON array of ids) of which all nodes have ended.
INSERT INTO rota_flow_end (flow, round, at, keep_until, outcome, reason)
SELECT id, round, now, now + keep,
       CASE WHEN failed IS NOT NULL THEN 'failed' WHEN cancelled THEN 'cancelled' ELSE 'completed' END,
       CASE WHEN failed IS NOT NULL THEN failed || ' has failed' WHEN cancelled THEN reason END
FROM (
    SELECT flow.id, flow.round, flow.keep, (julianday('now') - 2440587.5) * 86400.0 AS now,
           min(CASE WHEN fact.outcome = 'failed' THEN node.name END) AS failed,
           max(fact.outcome = 'cancelled') AS cancelled,
           min(CASE WHEN fact.outcome = 'cancelled' THEN fact.reason END) AS reason
    FROM rota_flow AS flow
    LEFT JOIN rota_flow_node AS node ON node.flow = flow.id
    LEFT JOIN rota_flow_fact AS fact ON fact.node = node.id AND fact.round = node.round AND fact.fact = 'ended'
    WHERE flow.id IN (SELECT value FROM json_each(:flows))
      AND NOT EXISTS (
          SELECT 1 FROM rota_flow_node AS open
          WHERE open.flow = flow.id AND NOT EXISTS (
              SELECT 1 FROM rota_flow_fact AS ended
              WHERE ended.node = open.id AND ended.round = open.round AND ended.fact = 'ended')
          ORDER BY open.flow DESC, open.id DESC LIMIT 1)
    GROUP BY flow.id
)
WHERE true
ON CONFLICT DO NOTHING;
