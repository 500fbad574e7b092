-- The next jobs of a node, by id, that may not have ended: those in the timer and in the log. The
-- newest entry of a job says to which node it belongs: one that was replaced has left the node, and
-- older entries of it may be there still.
-- Walks the timer's primary key and log_job from the last one on.
SELECT job.id
FROM rota.flow_node AS node
CROSS JOIN LATERAL (
    SELECT timer.id FROM rota.timer
    WHERE timer.id > %(after)s::int8 AND timer.id BETWEEN node.first_job AND node.last_job
      AND timer.headers ->> 'rota.node' = node.id::text
      AND NOT EXISTS (SELECT FROM rota.timer AS newer WHERE newer.id = timer.id AND newer.entry > timer.entry)
      AND NOT EXISTS (SELECT FROM rota.log AS newer WHERE newer.id = timer.id AND newer.entry > timer.entry)
    UNION
    SELECT entry.id FROM rota.log AS entry
    WHERE entry.id > %(after)s::int8 AND entry.id BETWEEN node.first_job AND node.last_job
      AND entry.headers ->> 'rota.node' = node.id::text
      AND NOT EXISTS (SELECT FROM rota.finished WHERE finished.id = entry.id)
      AND NOT EXISTS (SELECT FROM rota.timer AS newer WHERE newer.id = entry.id AND newer.entry > entry.entry)
      AND NOT EXISTS (SELECT FROM rota.log AS newer WHERE newer.id = entry.id AND newer.entry > entry.entry)
) AS job
WHERE node.id = %(node)s::int8
ORDER BY job.id LIMIT %(size)s::int8
