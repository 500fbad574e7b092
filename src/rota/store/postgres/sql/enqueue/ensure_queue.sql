-- Make a queue known. Waits only for another transaction that makes the same queue: a short one.
INSERT INTO rota.queue (name) VALUES (%(queue)s) ON CONFLICT DO NOTHING
