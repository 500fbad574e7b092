-- The jobs that workers hold, up to `size` of each worker (of these sessions, a JSON array; null:
-- of all), those first that it has had the longest.
-- Locks nothing. Walks: rota_job_running.
SELECT session, id, task, queue, attempt
FROM (
    SELECT session, id, task, queue, attempt, lease,
           row_number() OVER (PARTITION BY session ORDER BY lease, id) AS place
    FROM rota_job INDEXED BY rota_job_running
    WHERE session IS NOT NULL
      AND (:sessions IS NULL OR session IN (SELECT value FROM json_each(:sessions)))
)
WHERE place <= :size
ORDER BY session, lease, id;
