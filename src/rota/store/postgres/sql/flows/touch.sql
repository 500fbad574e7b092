-- Note that a user retries these jobs, in the nodes that they belong to; gives these. end.sql locks
-- the rows of nodes that end: whoever comes first decides whether a job counts for its node again
-- or runs alone.
-- Locks: the rows of these nodes, in their order.
WITH node AS MATERIALIZED (
    SELECT node.id FROM rota.flow_node AS node
    WHERE node.id = ANY (ARRAY(
        SELECT (finished.headers ->> 'rota.node')::int8 FROM rota.finished
        WHERE finished.id = ANY (%(jobs)s::int8[]) AND finished.headers ->> 'rota.node' IS NOT NULL))
    ORDER BY node.id FOR UPDATE
)
UPDATE rota.flow_node AS same SET touched = same.touched + 1 FROM node WHERE same.id = node.id
RETURNING same.id
