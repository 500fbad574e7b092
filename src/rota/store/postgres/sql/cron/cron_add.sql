-- Store a new entry; gives its id and the time, and nothing where the name is taken.
-- Waits only for another transaction that adds the same name.
INSERT INTO rota.cron_entry (name, expression, timezone, missed, jitter, task, args, parameter, queue,
                             priority, max_attempts, timeout, options, declaration)
VALUES (%(name)s, %(expression)s, %(timezone)s, %(missed)s, %(jitter)s::float8, %(task)s,
        %(args)s::text::json, %(parameter)s::text, %(queue)s, CAST(%(priority)s AS int2),
        %(max_attempts)s::int2, %(timeout)s::float4, %(options)s::text::json,
        %(declaration)s::text)
ON CONFLICT (name) DO NOTHING
RETURNING id, clock_timestamp()
