-- Add so many jobs to one count; `expires` is the moment from which on they are out of sight, or
-- null.
-- Locks: the database, in the transaction that changes the jobs. Walks: rota_count by its primary
-- key.
-- It begins with INSERT for the same reason as enqueue.sql.
INSERT INTO rota_count (queue, state, expires, jobs)
VALUES (:queue, :state, coalesce(:expires, 9e999), :jobs)
ON CONFLICT DO UPDATE SET jobs = jobs + excluded.jobs;
