-- How many lanes of keys each queue has, those that are in use and those that are not.
-- Locks nothing. Reads all of rota_lane_order.
SELECT queue, count(*) FROM rota_lane GROUP BY queue ORDER BY queue;
