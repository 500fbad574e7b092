-- Move the cursors to their other table. Statements that still write to the previous one do no
-- harm.
SELECT setval('rota.cursor_turn', (SELECT last_value + 1 FROM rota.cursor_turn))
