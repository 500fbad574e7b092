-- Forget what these jobs of a node have returned to others: they run again. Walks flow_result's
-- primary key.
DELETE FROM rota.flow_result WHERE node = %(node)s::int8 AND job = ANY (%(jobs)s::int8[])
