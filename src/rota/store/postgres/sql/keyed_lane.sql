-- Find a lane by its queue and priority. Locks nothing.
SELECT id FROM rota.lane WHERE queue = %(queue)s AND priority = %(priority)s::int2
