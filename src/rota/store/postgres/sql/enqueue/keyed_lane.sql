-- Find a plain lane by its queue and priority, and whether it is known as a unique lane. Locks
-- nothing.
SELECT id, keyed FROM rota.lane WHERE queue = %(queue)s AND priority = CAST(%(priority)s AS int2) AND NOT of_key
