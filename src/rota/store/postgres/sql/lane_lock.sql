-- Find a lane by its queue and priority, and lock it as a claim does.
SELECT id FROM rota.lane WHERE queue = %(queue)s AND priority = %(priority)s::int2
FOR NO KEY UPDATE
