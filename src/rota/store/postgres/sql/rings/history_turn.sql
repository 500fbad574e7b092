-- Move the history to its next segment.
SELECT setval('rota.history_turn', (SELECT last_value + %(by)s::int8 FROM rota.history_turn)),
       setval('rota.history_begun', extract(epoch FROM clock_timestamp())::int8)
