-- The next jobs of a node, by id, that were discarded or cancelled; `anew`: all that have ended.
-- Walks finished_job.
SELECT job.id
FROM rota.flow_node AS node
CROSS JOIN LATERAL (
    SELECT finished.id FROM rota.finished
    WHERE finished.id > %(after)s::int8 AND finished.id BETWEEN node.first_job AND node.last_job
      AND finished.headers ->> 'rota.node' = node.id::text AND (%(anew)s::bool OR finished.state IN ('discarded', 'cancelled'))
      AND finished.keep_until > now()
) AS job
WHERE node.id = %(node)s::int8
ORDER BY job.id LIMIT %(size)s::int8
