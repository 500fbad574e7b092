-- Let all nodes of a flow be looked at once more: what a decider dropped, because the flow was
-- retried meanwhile, is to be decided anew.
INSERT INTO rota.flow_arrival (node) SELECT id FROM rota.flow_node WHERE flow = %(flow)s::int8
RETURNING node
