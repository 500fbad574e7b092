-- Let a queue go on; gives nothing where it was not paused.
UPDATE rota_queue SET paused = 0 WHERE name = :queue AND paused RETURNING name;
