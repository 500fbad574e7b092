-- The keys of leased jobs that have one. Reads each job's newest log entry by log_job.
SELECT back.id, job.unique_key
FROM unnest(%(jobs)s::int8[]) AS back (id)
CROSS JOIN LATERAL (
    SELECT entry.unique_key FROM rota.log AS entry WHERE entry.id = back.id
    ORDER BY entry.id DESC, entry.entry DESC LIMIT 1
) AS job
WHERE job.unique_key IS NOT NULL
