-- What is set for a queue, of what a job brings with it. Locks nothing.
SELECT max_attempts, timeout FROM rota.queue_setting WHERE queue = %(queue)s
