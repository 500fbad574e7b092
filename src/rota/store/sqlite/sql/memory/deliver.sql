-- Let those of these jobs (a JSON array of ids) become due that wait for a signal which is there;
-- their ids. A wait counts while the job has the time with which it began.
-- Locks: the database. Walks: rota_job by its primary key, and rota_memory_order.
UPDATE rota_job SET scheduled_at = (julianday('now') - 2440587.5) * 86400.0
WHERE id IN (SELECT value FROM json_each(:jobs)) AND state = 'scheduled'
  AND EXISTS (
    SELECT 1 FROM rota_memory AS wait
    JOIN rota_memory AS signal ON signal.job = wait.job AND signal.kind = 'signal' AND signal.name = wait.ref
    WHERE wait.job = rota_job.id AND wait.kind = 'wait' AND wait.due = rota_job.scheduled_at
      AND NOT EXISTS (
        SELECT 1 FROM rota_memory AS answer
        WHERE answer.job = signal.job AND answer.kind = 'answer' AND answer.ref = signal.ref))
RETURNING id;
