-- How many leased jobs have their newest entry in a segment of the log.
SELECT count(*)
FROM rota.lease
CROSS JOIN LATERAL unnest(lease.jobs) AS held (id)
CROSS JOIN LATERAL (
    SELECT entry.segment FROM rota.log AS entry WHERE entry.id = held.id
    ORDER BY entry.id DESC, entry.entry DESC LIMIT 1
) AS job
WHERE job.segment = %(segment)s::int2
