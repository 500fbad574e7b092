-- Write down the suspects that a session begins to run now, and nothing beside them; gives no row
-- if the session is not alive, or belongs to the time before a failover. A rescue locks the
-- session's row, so it comes either before or after.
INSERT INTO rota.lot (session, jobs)
SELECT id, %(jobs)s::int8[] FROM rota.session
WHERE id = %(session)s::int8 AND timeline = (SELECT timeline FROM rota.here)
FOR KEY SHARE
ON CONFLICT (session) DO UPDATE SET jobs = excluded.jobs
RETURNING session
