-- Move the memory to its other table. Workers that still write to the previous one do no harm.
SELECT setval('rota.memory_turn', (SELECT last_value + 1 FROM rota.memory_turn))
