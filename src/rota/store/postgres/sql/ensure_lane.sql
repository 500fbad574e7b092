-- Make a lane known. Waits only for another transaction that makes the same lane: a short one.
INSERT INTO rota.lane (queue, priority) VALUES (%(queue)s, %(priority)s::int2)
ON CONFLICT DO NOTHING
