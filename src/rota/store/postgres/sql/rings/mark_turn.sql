-- Move the marks of the totals to their other table. Statements that still write to the previous
-- one do no harm.
SELECT setval('rota.tally_mark_turn', (SELECT last_value + 1 FROM rota.tally_mark_turn))
