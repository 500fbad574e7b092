-- A sign of life; which of the session's jobs somebody wants cancelled, and what is set for queues
-- (null: nothing); no row where the session is not alive. The session's row is locked FOR KEY SHARE: a rescue of it waits, or was first, and
-- then there is no row to insert for. Nor is there one for a session of another cluster, whose dump
-- was restored here; see rota.origin. The table of requests is nearly always empty. Gives also
-- which sessions serve each of this one's queues, itself among them.
WITH alive AS (
    INSERT INTO rota.heartbeat (session)
    SELECT id FROM rota.session
    WHERE id = %(session)s::int8
      AND NOT EXISTS (
        SELECT FROM rota.origin, pg_control_system() AS here
        WHERE origin.system_identifier <> here.system_identifier)
    FOR KEY SHARE
    RETURNING session
)
SELECT ARRAY(
    SELECT request.job FROM rota.cancel_request AS request
    WHERE EXISTS (
        SELECT FROM rota.lease
        WHERE lease.session = %(session)s::int8 AND request.job = ANY (lease.jobs))),
    ARRAY(SELECT queue FROM rota.session, unnest(queues) AS queue
          WHERE queue = ANY (mine.queues) ORDER BY id, queue),
    ARRAY(SELECT id FROM rota.session, unnest(queues) AS queue
          WHERE queue = ANY (mine.queues) ORDER BY id, queue),
    (SELECT json_agg(queue_setting) FROM rota.queue_setting)
FROM alive JOIN rota.session AS mine ON mine.id = alive.session
