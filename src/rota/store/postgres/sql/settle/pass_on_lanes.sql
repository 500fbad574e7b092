-- Make the lanes for jobs of tasks that this worker does not know: one for each task beside each
-- lane where such a job was met, with the same limit, and of its fair share. The key of such a lane
-- is none that a producer could ask for.
-- (Its number for a fair share stands for text that may be long.)
-- Waits only for another transaction that makes the same lanes, in the same order: a short one.
INSERT INTO rota.lane (queue, priority, limit_id, fair, task)
SELECT DISTINCT met.queue, met.priority, met.limit_id, met.fair, met.task
FROM (
    SELECT lane.queue, lane.priority, lane.limit_id, job.task,
           concat_ws(chr(1), '', job.task, hashtextextended(lane.fair, 0)) AS fair
    FROM unnest(%(jobs)s::int8[]) AS back (id)
    CROSS JOIN LATERAL (
        SELECT entry.lane, entry.task FROM rota.log AS entry WHERE entry.id = back.id
        ORDER BY entry.id DESC, entry.entry DESC LIMIT 1
    ) AS job
    JOIN rota.lane ON lane.id = job.lane
    WHERE lane.task IS DISTINCT FROM job.task
) AS met
WHERE NOT EXISTS (
    -- A conflict would use up a number.
    SELECT FROM rota.lane
    WHERE lane.queue = met.queue AND lane.priority = met.priority
      AND lane.limit_id = met.limit_id AND lane.fair = met.fair)
ORDER BY met.queue, met.priority, met.limit_id, met.fair
ON CONFLICT DO NOTHING
