-- Find a plain lane by its queue and priority, and lock it as a claim does.
SELECT id FROM rota.lane WHERE queue = %(queue)s AND priority = CAST(%(priority)s AS int2) AND NOT of_key
FOR NO KEY UPDATE
