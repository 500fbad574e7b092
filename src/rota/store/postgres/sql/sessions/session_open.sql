-- Register a worker, with its first sign of life.
WITH session AS (
    INSERT INTO rota.session (host, pid, queues, timeout, timeline, tasks)
    SELECT %(host)s, %(pid)s::int4, %(queues)s::text[],
           make_interval(secs => %(timeout)s::float8), timeline, %(tasks)s::text[]
    FROM rota.here
    RETURNING id
), heartbeat AS (
    INSERT INTO rota.heartbeat (session) SELECT id FROM session
)
SELECT id FROM session
