-- What people did, the newest first, from the one below `before` on. Locks nothing. Walks: audit's
-- primary key, backwards.
SELECT id, at, who, action, what::text, changed, job FROM rota.audit
WHERE id < %(before)s::int8 ORDER BY id DESC LIMIT %(size)s::int8
