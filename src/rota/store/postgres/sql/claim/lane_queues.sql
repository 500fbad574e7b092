-- Which lane belongs to which queue. Locks nothing; only a claim that takes but so many jobs of a queue
-- asks, once for each lane it meets.
SELECT id, queue FROM rota.lane
