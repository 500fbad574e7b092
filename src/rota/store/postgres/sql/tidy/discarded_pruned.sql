-- Remember that the discarded jobs are removed whose retention is over by now.
SELECT setval('rota.discarded_pruned', extract(epoch FROM now())::int8)
