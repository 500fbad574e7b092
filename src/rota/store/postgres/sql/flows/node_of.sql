-- The nodes of jobs that were leased. Reads each job's newest log entry by log_job.
SELECT job.headers ->> 'rota.node'
FROM unnest(%(jobs)s::int8[]) AS back (id)
CROSS JOIN LATERAL (
    SELECT entry.headers FROM rota.log AS entry WHERE entry.id = back.id
    ORDER BY entry.id DESC, entry.entry DESC LIMIT 1
) AS job
