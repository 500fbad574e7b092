-- Go on to the next position, if nobody else has; gives the id. Locks the row, for which another
-- run of the same job waits.
-- Walks: audit's primary key.
UPDATE rota.audit SET position = %(further)s
WHERE id = %(id)s::int8 AND position IS NOT DISTINCT FROM %(before)s::text
RETURNING id
