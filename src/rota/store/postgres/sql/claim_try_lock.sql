-- claim_lock.sql for every further lane of the same claim: does not wait, so that two claims that
-- walk their lanes in different orders cannot deadlock. The session is locked already.
SELECT lane.queue, lane.priority
FROM rota.lane
JOIN rota.queue ON queue.name = lane.queue
WHERE lane.id = %(lane)s::int4 AND NOT queue.paused AND %(session)s::int8 IS NOT NULL
FOR NO KEY UPDATE OF lane SKIP LOCKED
