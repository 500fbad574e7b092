-- What is set for single queues. Locks nothing; reads a table of a row per queue.
SELECT queue, completed, cancelled, discarded, max_attempts, timeout, concurrency
FROM rota_queue_setting;
