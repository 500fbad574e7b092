-- Ask the workers that run these jobs to cancel them.
INSERT INTO rota.cancel_request (job)
SELECT DISTINCT job FROM rota.lease, unnest(lease.jobs) AS job
WHERE job = ANY (%(jobs)s::int8[])
ON CONFLICT (job) DO NOTHING
