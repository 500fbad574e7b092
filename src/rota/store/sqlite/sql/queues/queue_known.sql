-- Make a queue known. Locks: the database. Walks: rota_queue by its primary key.
INSERT INTO rota_queue (name) VALUES (:queue) ON CONFLICT DO NOTHING;
