-- The ids of all discarded jobs, of a queue or a task where one is given.
SELECT id FROM rota.finished
WHERE segment = -1 AND keep_until > now()
  AND (%(queue)s::text IS NULL OR queue = %(queue)s) AND (%(task)s::text IS NULL OR task = %(task)s)
ORDER BY id
