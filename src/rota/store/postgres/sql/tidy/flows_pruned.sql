-- Remember that the flows are removed whose retention is over by now.
SELECT setval('rota.flow_pruned', extract(epoch FROM now())::int8)
