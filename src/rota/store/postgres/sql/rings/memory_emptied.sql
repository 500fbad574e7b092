-- Note how many bytes of memory were copied to the current table.
SELECT setval('rota.memory_kept', (
    SELECT pg_relation_size(slot.oid) + coalesce(pg_relation_size(slot.reltoastrelid), 0) FROM pg_class AS slot
    WHERE slot.oid = format('rota.memory_%s', (SELECT last_value % 2 FROM rota.memory_turn))::regclass))
