-- Move the log to its next segment. Producers that still write to the previous one do no harm.
SELECT setval('rota.log_turn', (SELECT last_value + %(by)s::int8 FROM rota.log_turn)),
       setval('rota.log_begun', extract(epoch FROM clock_timestamp())::int8)
