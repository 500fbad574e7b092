-- All queues: a worker whose queues are named by a pattern asks for them, with each look. Locks
-- nothing; reads a table of a row per queue.
SELECT name FROM rota.queue
