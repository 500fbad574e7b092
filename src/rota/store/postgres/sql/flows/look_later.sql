-- Let upkeep look at these nodes once more: what it would have to lock was held by another
-- transaction. An arrival of nothing is newer than the mark. Locks nothing.
INSERT INTO rota.flow_arrival (node) SELECT unnest(%(nodes)s::int8[])
