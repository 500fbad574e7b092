-- Set back the times of these jobs (a JSON array of ids). Locks: the database. Walks: rota_job by
-- its primary key.
UPDATE rota_job
SET enqueued_at = enqueued_at - :seconds, scheduled_at = scheduled_at - :seconds,
    finished_at = finished_at - :seconds, keep_until = keep_until - :seconds,
    last_run = last_run - :seconds
WHERE id IN (SELECT value FROM json_each(:jobs));
