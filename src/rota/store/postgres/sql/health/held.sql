-- The jobs that workers hold, up to `size` of each worker (of these sessions; null: of all), those
-- first that it has had the longest.
-- Locks nothing. Leases are few; log_job finds each job's entry; LIMIT 1 keeps the
-- planner from reading all lanes for each job.
SELECT session.id, held.job, entry.task, lane.queue, (entry.attempt + 1)::int4,
       extract(epoch FROM clock_timestamp() - held.claimed_at)::float8
FROM rota.session
CROSS JOIN LATERAL (
    SELECT job, lease.claimed_at
    FROM rota.lease CROSS JOIN LATERAL unnest(lease.jobs) AS job
    WHERE lease.session = session.id
    ORDER BY lease.claimed_at, job LIMIT %(size)s::int8
) AS held
CROSS JOIN LATERAL (
    SELECT log.task, log.attempt, log.lane FROM rota.log WHERE log.id = held.job
    ORDER BY log.id DESC, log.entry DESC LIMIT 1
) AS entry
CROSS JOIN LATERAL (SELECT queue FROM rota.lane WHERE lane.id = entry.lane LIMIT 1) AS lane
WHERE %(sessions)s::int8[] IS NULL OR session.id = ANY (%(sessions)s::int8[])
ORDER BY session.id, held.claimed_at, held.job
