-- Of these jobs (a JSON array of ids), which wait again or have finished, forget the keys that were
-- freed when they started.
-- Locks: the database. Walks: rota_job by its primary key, rota_unique_job.
UPDATE rota_job SET unique_key = NULL
WHERE id IN (SELECT value FROM json_each(:jobs)) AND +unique_key IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM rota_unique WHERE job = rota_job.id);
