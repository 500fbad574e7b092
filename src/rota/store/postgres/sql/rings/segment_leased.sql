-- How many leased jobs have their newest entry in a segment of the log and no copy elsewhere, and
-- how many bytes these have.
SELECT count(*),
       coalesce(sum(pg_column_size(job.args) + coalesce(pg_column_size(job.errors), 0)
                    + coalesce(pg_column_size(job.headers), 0)), 0)::int8
FROM rota.lease
CROSS JOIN LATERAL unnest(lease.jobs) AS held (id)
CROSS JOIN LATERAL (
    SELECT entry.id, entry.entry, entry.segment, entry.args, entry.errors, entry.headers FROM rota.log AS entry
    WHERE entry.id = held.id
    ORDER BY entry.id DESC, entry.entry DESC LIMIT 1
) AS job
WHERE job.segment = %(segment)s::int2
  AND NOT EXISTS (
    SELECT FROM rota.log AS copy
    WHERE copy.id = job.id AND copy.entry = job.entry AND copy.segment <> job.segment)
