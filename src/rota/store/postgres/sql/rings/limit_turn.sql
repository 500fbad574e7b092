-- Move what started under a rate to the other table.
SELECT setval('rota.limit_turn', (SELECT last_value + 1 FROM rota.limit_turn))
