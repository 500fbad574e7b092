-- Set what `names` lists for a queue, and leave the rest as it is; null takes a setting away. The
-- queue is known by then. Waits only for another transaction that sets the same queue: a short one.
INSERT INTO rota.queue_setting AS said
    (queue, completed, cancelled, discarded, max_attempts, timeout, concurrency)
VALUES (%(queue)s, %(completed)s::float8, %(cancelled)s::float8, %(discarded)s::float8,
        %(max_attempts)s::int2, %(timeout)s::float4, %(concurrency)s::int4)
ON CONFLICT (queue) DO UPDATE SET
    completed = CASE WHEN 'completed' = ANY (%(names)s::text[])
                     THEN excluded.completed ELSE said.completed END,
    cancelled = CASE WHEN 'cancelled' = ANY (%(names)s::text[])
                     THEN excluded.cancelled ELSE said.cancelled END,
    discarded = CASE WHEN 'discarded' = ANY (%(names)s::text[])
                     THEN excluded.discarded ELSE said.discarded END,
    max_attempts = CASE WHEN 'max_attempts' = ANY (%(names)s::text[])
                        THEN excluded.max_attempts ELSE said.max_attempts END,
    timeout = CASE WHEN 'timeout' = ANY (%(names)s::text[])
                   THEN excluded.timeout ELSE said.timeout END,
    concurrency = CASE WHEN 'concurrency' = ANY (%(names)s::text[])
                       THEN excluded.concurrency ELSE said.concurrency END
RETURNING queue, completed, cancelled, discarded, max_attempts, timeout, concurrency
