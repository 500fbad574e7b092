-- Move the notes to their other table. Workers that still write to the previous one do no harm.
SELECT setval('rota.note_turn', (SELECT last_value + 1 FROM rota.note_turn))
