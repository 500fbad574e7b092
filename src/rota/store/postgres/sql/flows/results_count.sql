-- How many results of a node's jobs there are. Walks flow_result's primary key.
SELECT count(*) FROM rota.flow_result WHERE node = %(node)s::int8
