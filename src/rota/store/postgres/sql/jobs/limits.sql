-- The limits with keys after `after`, by key: what each allows, how many of its jobs are held, and how many started
-- within its window. Locks nothing. Walks: limit_key's index of keys, limit_start_order over each window, and all
-- leases once, which are few.
WITH held AS MATERIALIZED (
    SELECT one.limit_id, count(*) AS jobs
    FROM rota.lease CROSS JOIN LATERAL unnest(lease.limits) AS one (limit_id)
    WHERE lease.limits IS NOT NULL
    GROUP BY one.limit_id
)
SELECT limit_key.key, limit_key.running,
       coalesce((SELECT held.jobs FROM held WHERE held.limit_id = limit_key.id), 0),
       limit_key.rate_count, limit_key.rate_seconds::float8,
       (SELECT coalesce(sum(start.jobs), 0)::int8 FROM rota.limit_start AS start
        WHERE start.limit_id = limit_key.id
          AND start.at > clock_timestamp() - make_interval(secs => limit_key.rate_seconds::float8))
FROM rota.limit_key
WHERE limit_key.key > %(after)s
ORDER BY limit_key.key LIMIT %(most)s::int8
