-- All queues: a worker whose queues are named by a pattern asks for them, with each look. Locks
-- nothing.
-- Walks: rota_queue, and the primary key of rota_count with one probe for each queue.
WITH RECURSIVE counted (name) AS (
    SELECT min(queue) FROM rota_count
    UNION ALL
    SELECT (SELECT min(queue) FROM rota_count WHERE queue > counted.name) FROM counted
    WHERE name IS NOT NULL
)
SELECT name FROM counted WHERE name IS NOT NULL UNION SELECT name FROM rota_queue;
