-- Write an entry that is locked. One row version; people and starting workers do this.
UPDATE rota.cron_entry
SET expression = %(expression)s, timezone = %(timezone)s, missed = %(missed)s,
    jitter = %(jitter)s::float8, task = %(task)s, args = %(args)s::text::json,
    parameter = %(parameter)s::text, queue = %(queue)s, priority = CAST(%(priority)s AS int2),
    max_attempts = %(max_attempts)s::int2, timeout = %(timeout)s::float4,
    options = %(options)s::text::json,
    declaration = coalesce(%(declaration)s::text, declaration)
WHERE id = %(entry)s::int4
RETURNING id
