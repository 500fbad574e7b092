-- Take the numbers of nodes that are added to a flow.
SELECT ARRAY(SELECT nextval('rota.flow_node_id') FROM generate_series(1, %(nodes)s::int4))
