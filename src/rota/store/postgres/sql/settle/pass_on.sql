-- append_again.sql for jobs of tasks that this worker does not know: each goes to the lane of its
-- task, see pass_on_lanes.sql, from which only workers claim that know the task. Gives their
-- queues.
WITH back AS MATERIALIZED (
    SELECT job.*, lane.queue, coalesce(own.id, job.lane) AS new_lane
    FROM unnest(%(jobs)s::int8[]) AS back (id)
    CROSS JOIN LATERAL (
        SELECT entry.* FROM rota.log AS entry WHERE entry.id = back.id
        ORDER BY entry.id DESC, entry.entry DESC LIMIT 1
    ) AS job
    JOIN rota.lane ON lane.id = job.lane
    LEFT JOIN rota.lane AS own
      ON own.queue = lane.queue AND own.priority = lane.priority AND own.limit_id = lane.limit_id
     AND own.fair = concat_ws(chr(1), '', job.task, hashtextextended(lane.fair, 0))
     AND lane.task IS DISTINCT FROM job.task
), job AS (
    INSERT INTO rota.log (id, enqueued_at, lane, entry, timeout, segment, attempt, max_attempts, task,
                          args, errors, unique_key, iteration, last_run, headers)
    SELECT back.id, back.enqueued_at, back.new_lane, back.entry + 1, back.timeout,
           (SELECT last_value %% 4 FROM rota.log_turn), back.attempt, back.max_attempts, back.task,
           back.args, back.errors,
           CASE WHEN back.unique_key IS NOT NULL THEN (
               SELECT held.key FROM rota.unique_key AS held
               WHERE held.key = back.unique_key AND held.task = back.task AND held.job = back.id) END,
           back.iteration, back.last_run, back.headers
    FROM back ORDER BY back.xid, back.id
)
SELECT DISTINCT queue FROM back
