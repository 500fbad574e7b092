-- Copy the leased rows of a segment forward, so that a long-running job does not pin it. The copies
-- keep their position in log order, at or before the cursor: no claim sees them. Those that have a
-- copy already get no other, and those that no mark has counted yet have to wait: they would count
-- twice.
INSERT INTO rota.log (id, xid, enqueued_at, lane, entry, timeout, segment, attempt, max_attempts,
                      task, args, errors, unique_key, iteration, last_run, headers)
SELECT job.id, job.xid, job.enqueued_at, job.lane, job.entry, job.timeout,
       (SELECT last_value %% 4 FROM rota.log_turn), job.attempt, job.max_attempts, job.task,
       job.args, job.errors, job.unique_key, job.iteration, job.last_run, job.headers
FROM rota.lease
CROSS JOIN LATERAL unnest(lease.jobs) AS held (id)
CROSS JOIN LATERAL (
    SELECT entry.* FROM rota.log AS entry WHERE entry.id = held.id
    ORDER BY entry.id DESC, entry.entry DESC LIMIT 1
) AS job
WHERE job.segment = %(segment)s::int2
  AND NOT EXISTS (
    SELECT FROM rota.log AS copy
    WHERE copy.id = job.id AND copy.entry = job.entry AND copy.segment <> job.segment)
  AND pg_visible_in_snapshot(job.xid, (
    SELECT snapshot FROM rota.tally_mark ORDER BY seq DESC LIMIT 1))
