-- Move the log ring forward by one. Producers that still write to the previous one do no harm.
SELECT setval('rota.log_turn', (SELECT last_value + 1 FROM rota.log_turn))
