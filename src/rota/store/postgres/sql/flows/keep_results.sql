-- Keep the results of jobs that others are given. Nodes whose flow is gone are left out.
INSERT INTO rota.flow_result (node, job, value)
SELECT came.node, came.job, came.value::json
FROM unnest(%(nodes)s::int8[], %(jobs)s::int8[], %(results)s::text[]) AS came (node, job, value)
WHERE EXISTS (SELECT FROM rota.flow_node WHERE flow_node.id = came.node)
ON CONFLICT (node, job) DO UPDATE SET value = excluded.value
