-- Pause a queue, and make it known; gives nothing where it was paused already.
INSERT INTO rota_queue (name, paused) VALUES (:queue, 1)
ON CONFLICT (name) DO UPDATE SET paused = 1 WHERE NOT paused
RETURNING name;
