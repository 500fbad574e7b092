-- How many lanes of keys each queue has, those that are in use and those that are not.
-- Locks nothing. Reads all of lane_keyed.
SELECT queue, count(*) FROM rota.lane WHERE of_key GROUP BY queue ORDER BY queue
