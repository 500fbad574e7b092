-- Move the finished ring to its next segment. Statements that still write to the previous one do no
-- harm.
SELECT setval('rota.finished_turn', (SELECT last_value + %(by)s::int8 FROM rota.finished_turn)),
       setval('rota.finished_begun', extract(epoch FROM clock_timestamp())::int8)
