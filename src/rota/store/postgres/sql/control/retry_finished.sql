-- Make finished jobs available again, with all their attempts; their errors stay readable. The
-- lanes exist, since the jobs once lay in them. Says so in the tally.
-- A unique job takes its key again, and stays as it is where another job has it; of two with the same
-- key the newer one comes back. Waits for an open transaction that holds the key.
-- `only`: if they are in this state.
WITH locked AS MATERIALIZED (
    SELECT finished.id, finished.entry, finished.task, finished.unique_key, finished.while_waiting,
           finished.iteration, finished.last_run, lane.id AS lane
    FROM rota.finished
    JOIN rota.lane ON lane.id = coalesce(finished.lane, (
        SELECT plain.id FROM rota.lane AS plain
        WHERE plain.queue = finished.queue AND plain.priority = finished.priority
          AND NOT plain.of_key))
    WHERE finished.id = ANY (%(jobs)s::int8[]) AND finished.keep_until > now()
      AND finished.unique_key IS NOT NULL AND (%(only)s::text IS NULL OR finished.state = %(only)s)
    FOR UPDATE OF finished
), key AS (
    INSERT INTO rota.unique_key AS held (job, lane, entry, while_waiting, state, task, key, iteration, last_run)
    SELECT DISTINCT ON (unique_key COLLATE "C", task)
           id, lane, entry + 1, coalesce(while_waiting, false), 'available', task, unique_key, iteration, last_run
    FROM locked ORDER BY unique_key COLLATE "C", task, id DESC
    ON CONFLICT (key, task) DO UPDATE
        SET state = excluded.state, entry = excluded.entry, lane = excluded.lane
        WHERE held.job = excluded.job AND held.state = 'ended'
    RETURNING job
), job AS (
    DELETE FROM rota.finished
    WHERE id = ANY (%(jobs)s::int8[]) AND keep_until > now()
      AND (%(only)s::text IS NULL OR state = %(only)s)
      AND (unique_key IS NULL OR (id IN (SELECT job FROM key)) IS TRUE)
    RETURNING *
), gone AS (
    INSERT INTO rota.tally (slot, lane, state, expires, jobs)
    SELECT (SELECT last_value %% 2 FROM rota.tally_turn), lane.id, kind.state, kind.keep_until,
           -kind.jobs
    FROM (
        SELECT queue, priority, state, keep_until, count(*) AS jobs FROM job
        GROUP BY queue, priority, state, keep_until
    ) AS kind
    JOIN rota.lane ON lane.queue = kind.queue AND lane.priority = kind.priority AND NOT lane.of_key
)
INSERT INTO rota.log (id, enqueued_at, lane, entry, timeout, segment, attempt, max_attempts, task,
                      args, errors, unique_key, iteration, last_run, headers)
SELECT job.id, job.enqueued_at, lane.id, job.entry + 1, job.timeout,
       (SELECT last_value %% 4 FROM rota.log_turn), 0, job.max_attempts, job.task, job.args,
       job.errors, job.unique_key, job.iteration, job.last_run, job.headers
FROM job
CROSS JOIN LATERAL (
    SELECT coalesce(job.lane, (
        SELECT id FROM rota.lane
        WHERE lane.queue = job.queue AND lane.priority = job.priority AND NOT lane.of_key)) AS id
) AS lane
ORDER BY job.id
RETURNING id
