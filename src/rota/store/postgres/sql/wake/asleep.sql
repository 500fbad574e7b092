-- Say that a worker of these queues may be asleep: shared locks, which any number of workers may
-- hold.
-- A producer that cannot have such a lock alone notifies; see enqueue.sql.
SELECT pg_advisory_lock_shared(7682001, hashtext(queue))
FROM unnest(%(queues)s::text[]) AS queue
