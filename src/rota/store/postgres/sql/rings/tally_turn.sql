-- Move the tally to its other table. Statements that still write to the previous one do no harm.
SELECT setval('rota.tally_turn', (SELECT last_value + 1 FROM rota.tally_turn))
