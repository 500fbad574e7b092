-- Move the tally to its other table. Those who still write to the previous one do no harm.
SELECT setval('rota.tally_turn', (SELECT last_value + 1 FROM rota.tally_turn))
