-- The next results of a node's jobs, in the order of their ids. Walks flow_result's primary key.
SELECT job, value::text FROM rota.flow_result
WHERE node = %(node)s::int8 AND job > %(after)s::int8
ORDER BY node, job LIMIT %(size)s::int8
