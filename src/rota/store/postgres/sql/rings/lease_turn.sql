-- Move the leases to their other table. Claims that still write to the previous one do no harm.
SELECT setval('rota.lease_turn', (SELECT last_value + 1 FROM rota.lease_turn))
