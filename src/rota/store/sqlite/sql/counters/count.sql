-- Add to the counts. `changes` is a JSON array of [queue, state, moment from which on the jobs are out
-- of sight or null, number of jobs].
-- Locks: the database, in the transaction that changes the jobs. Walks: rota_count by its primary key.
-- It begins with INSERT for the same reason as enqueue.sql.
INSERT INTO rota_count (queue, state, expires, jobs)
SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'),
       coalesce(json_extract(value, '$[2]'), 9e999), json_extract(value, '$[3]')
FROM json_each(:changes)
WHERE true
ON CONFLICT DO UPDATE SET jobs = jobs + excluded.jobs;
