-- Make finished jobs available again, with all their attempts; their errors stay readable. The
-- lanes exist, since the jobs once lay in them. Says so in the tally.
-- A unique job takes its key again, and stays as it is where another job has it; of two with the
-- same key the newer one comes back. Waits for an open transaction that holds the key.
-- A job of a flow's node counts for that node again, unless the node has ended: then it runs alone,
-- and its header goes.
-- Of the nodes that touch.sql has locked (`touched`), some are `kept` for a retry of their flow:
-- their failed and cancelled jobs stay as they are. So do jobs of nodes that were not locked, since
-- they have ended only after that.
-- `only`: if they are in this state. Gives each job, its node if it counts there, and the state in
-- which it was.
-- Locks: the rows of these jobs and their keys. Walks finished_job, and for jobs of nodes the
-- primary keys of flow_node and flow_fact.
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
      AND (finished.headers ->> 'rota.node' IS NULL
           OR CASE WHEN (finished.headers ->> 'rota.node')::int8 = ANY (%(touched)s::int8[])
                   THEN finished.state = 'completed' OR (finished.headers ->> 'rota.node')::int8 <> ALL (%(kept)s::int8[])
                   ELSE NOT EXISTS (SELECT FROM rota.flow_node AS node WHERE node.id = (finished.headers ->> 'rota.node')::int8)
              END)
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
      AND CASE WHEN unique_key IS NOT NULL THEN (id IN (SELECT job FROM key)) IS TRUE
               WHEN headers ->> 'rota.node' IS NULL THEN true
               WHEN (headers ->> 'rota.node')::int8 = ANY (%(touched)s::int8[])
               THEN state = 'completed' OR (headers ->> 'rota.node')::int8 <> ALL (%(kept)s::int8[])
               ELSE NOT EXISTS (SELECT FROM rota.flow_node AS node WHERE node.id = (finished.headers ->> 'rota.node')::int8)
          END
    RETURNING *
), member AS MATERIALIZED (
    SELECT job.id, node.id AS node
    FROM job JOIN rota.flow_node AS node ON node.id = (job.headers ->> 'rota.node')::int8
    WHERE NOT EXISTS (
        SELECT FROM rota.flow_fact AS fact
        WHERE fact.node = node.id AND fact.round = node.round AND fact.fact = 'ended')
), gone AS (
    INSERT INTO rota.tally (slot, lane, state, expires, jobs)
    SELECT (SELECT last_value %% 2 FROM rota.tally_turn), lane.id, kind.state, kind.keep_until,
           -kind.jobs
    FROM (
        SELECT queue, priority, state, keep_until, count(*) AS jobs FROM job
        GROUP BY queue, priority, state, keep_until
    ) AS kind
    JOIN rota.lane ON lane.queue = kind.queue AND lane.priority = kind.priority AND NOT lane.of_key
), back AS (
    INSERT INTO rota.log (id, enqueued_at, lane, entry, timeout, segment, attempt, max_attempts, task,
                          args, errors, unique_key, iteration, last_run, headers)
    SELECT job.id, job.enqueued_at, lane.id, job.entry + 1, job.timeout,
           (SELECT last_value %% 4 FROM rota.log_turn), 0, job.max_attempts, job.task, job.args,
           job.errors, job.unique_key, job.iteration, job.last_run,
           CASE WHEN job.headers ->> 'rota.node' IS NULL OR (job.id IN (SELECT id FROM member)) IS TRUE THEN job.headers
                ELSE (job.headers::jsonb - 'rota.node')::json END
    FROM job
    CROSS JOIN LATERAL (
        SELECT coalesce(job.lane, (
            SELECT id FROM rota.lane
            WHERE lane.queue = job.queue AND lane.priority = job.priority AND NOT lane.of_key)) AS id
    ) AS lane
    ORDER BY job.id
)
SELECT job.id, member.node, job.state FROM job LEFT JOIN member ON member.id = job.id ORDER BY job.id
