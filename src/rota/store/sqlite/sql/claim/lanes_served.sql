-- Note which lanes a lease served, in the order of their last jobs in it: a JSON array of ids.
-- Walks: rota_lane by its primary key.
UPDATE rota_lane SET served = :lease * 1000000 + (
    SELECT key FROM json_each(:lanes) WHERE value = rota_lane.id)
WHERE id IN (SELECT value FROM json_each(:lanes));
