-- Remove jobs that ended and of which nothing shall be kept, where the session still holds them
-- under these leases; gives the ids of the removed jobs, and their queues. `settled` is a JSON array of [job, lease].
-- Locks: the database. Walks: rota_job by its primary key.
DELETE FROM rota_job
WHERE (id, +lease) IN (
    SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(:settled)
)
  AND +session = :session
RETURNING id, queue;
