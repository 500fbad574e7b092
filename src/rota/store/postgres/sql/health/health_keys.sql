-- How many keys of each queue have jobs in the log: waiting, running or just done. Where there are
-- few lanes each of them counts. Locks nothing. Walks what the view lane_used walks.
SELECT queue, count(*) FROM rota.lane_used WHERE of_key GROUP BY queue ORDER BY queue
