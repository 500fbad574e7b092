-- Store edges.
INSERT INTO rota.flow_edge (node, after, condition)
SELECT * FROM unnest(%(nodes)s::int8[], %(afters)s::int8[], %(conditions)s::text[])
ON CONFLICT DO NOTHING
