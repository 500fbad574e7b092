-- The jobs that claim.sql has leased, of `chunks`, a JSON array of arrays of ids: for each of these
-- a JSON array of rows in the order of `ClaimedJob`. A row comes out of the driver by itself, and
-- any other thread of Python may run before it does; so many jobs come in one. Args longer than
-- `size` are left out, as an empty text.
-- Locks nothing. Walks: rota_job by its primary key.
SELECT (
    SELECT json_group_array(json_array(
               id, lease, task, CASE WHEN length(args) <= :size THEN args ELSE '' END, queue, priority, attempt,
               max_attempts, timeout, enqueued_at, json_extract(errors, '$[#-1].suspects'), headers,
               unique_key))
    FROM rota_job
    WHERE id IN (SELECT value FROM json_each(chunk.value)))
FROM json_each(:chunks) AS chunk;
