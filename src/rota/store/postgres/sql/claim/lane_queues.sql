-- Which lane belongs to which queue. Locks nothing; only a claim with a bound for single queues
-- asks, once for each lane that is new to it.
SELECT id, queue FROM rota.lane
