-- Set back until when these jobs sleep and wait. Walks memory_order.
UPDATE rota.memory SET until = until - make_interval(secs => %(seconds)s::float8), at = at - make_interval(secs => %(seconds)s::float8)
WHERE job = ANY (%(jobs)s::int8[])
