-- What these jobs remember, of all that came after the end of their last round; copies come twice.
-- Locks nothing. Walks memory_round, memory_order and finished_memory_order.
WITH wanted AS MATERIALIZED (
    SELECT job, coalesce((
        SELECT memory.id FROM rota.memory WHERE memory.job = wanted.job AND memory.kind = 'round'
        ORDER BY memory.job DESC, memory.id DESC LIMIT 1), 0) AS began
    FROM unnest(%(jobs)s::int8[]) AS wanted (job)
)
SELECT kept.job, kept.id, kept.kind, kept.name, kept.ref, kept.value::text, kept.at, kept.until,
       extract(epoch FROM kept.until - clock_timestamp())::float8
FROM wanted
CROSS JOIN LATERAL (
    SELECT job, id, kind, name, ref, value, at, until FROM rota.memory
    WHERE memory.job = wanted.job AND memory.id > wanted.began
    UNION ALL
    SELECT job, id, kind, name, ref, value, at, until FROM rota.finished_memory
    WHERE finished_memory.job = wanted.job AND finished_memory.id > wanted.began
) AS kept
ORDER BY kept.job, kept.id
