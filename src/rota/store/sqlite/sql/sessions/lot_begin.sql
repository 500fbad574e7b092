-- Write down the suspects (a JSON array of ids) that a session begins to run now, and nothing
-- beside them; gives no row if the session is not alive.
-- Locks: the database, so a rescue comes either before or after.
UPDATE rota_session SET lot = :jobs WHERE id = :session AND ended_at IS NULL RETURNING id;
