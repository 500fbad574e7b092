-- Move the finished ring forward by one. Producers that still write to the previous one do no harm.
SELECT setval('rota.finished_turn', (SELECT last_value + 1 FROM rota.finished_turn))
