-- A sign of life. The session's row is locked FOR KEY SHARE: a rescue of it waits, or was first,
-- and then there is no row to insert for.
INSERT INTO rota.heartbeat (session)
SELECT id FROM rota.session WHERE id = %(session)s::int8 FOR KEY SHARE
RETURNING session
