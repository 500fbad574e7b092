-- What is set for a queue, of what a job brings with it.
-- Locks nothing. Walks: rota_queue_setting by its primary key.
SELECT max_attempts, timeout FROM rota_queue_setting WHERE queue = :queue;
