-- Take out of the timer what replacements have made void of these jobs, which run and so have
-- nothing there that counts: what waited for a signal might have stayed for a century.
-- Locks: rows of the timer, SKIP LOCKED, so that no stager is waited for. Walks the timer's primary
-- key.
WITH void AS MATERIALIZED (
    SELECT id, entry FROM rota.timer WHERE id = ANY (%(jobs)s::int8[]) FOR UPDATE SKIP LOCKED
)
DELETE FROM rota.timer
WHERE id = ANY (ARRAY(SELECT id FROM void)) AND ((id, entry) IN (SELECT id, entry FROM void)) IS TRUE
