-- The bytes that were copied when the ring turned last.
SELECT last_value FROM rota.memory_kept
