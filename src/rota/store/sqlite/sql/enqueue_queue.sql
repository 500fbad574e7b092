-- Make a queue known, so that it stays listed when its jobs are gone. Usually changes nothing.
-- Walks: rota_queue by its primary key.
INSERT INTO rota_queue (name) VALUES (:queue) ON CONFLICT DO NOTHING;
