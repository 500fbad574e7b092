-- The ids of the next jobs of a queue that ended in one state. Locks nothing.
-- Walks: finished_job, from where the last batch ended.
SELECT id
FROM rota.finished
WHERE id > %(after)s::int8 AND id <= %(until)s::int8
  AND queue = %(queue)s AND state = %(state)s AND keep_until > now()
ORDER BY id LIMIT %(size)s::int8
