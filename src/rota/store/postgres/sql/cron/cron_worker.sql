-- Note which entries a worker declares, and forget workers that are gone.
WITH gone AS (
    DELETE FROM rota.cron_worker AS worker
    WHERE NOT EXISTS (SELECT FROM rota.session WHERE session.id = worker.session)
)
INSERT INTO rota.cron_worker (session, entries) VALUES (%(session)s::int8, %(names)s::text[])
ON CONFLICT (session) DO UPDATE SET entries = excluded.entries
RETURNING session
