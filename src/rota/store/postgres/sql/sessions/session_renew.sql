-- A sign of life. Gives the session's jobs that have a request to cancel, which sessions serve each
-- of its queues with the same tasks, itself among them, but not those that have long given no sign;
-- what is set for queues (null: nothing), and the server's clock. No row: the session is not alive,
-- came here with a dump (see rota.restored), or belongs to the time before a failover, whose last
-- commits may be lost.
-- Locks the session's row FOR KEY SHARE: a rescue waits, or was first and has removed the row. The
-- table of requests is nearly always empty. Walks heartbeat_order, for each session from 0.6 of its
-- timeout ago on.
WITH alive AS (
    INSERT INTO rota.heartbeat (session)
    SELECT id FROM rota.session
    WHERE id = %(session)s::int8 AND timeline = (SELECT timeline FROM rota.here)
      AND NOT (SELECT sure FROM rota.restored)
    FOR KEY SHARE
    RETURNING session
)
SELECT ARRAY(
    SELECT request.job FROM rota.cancel_request AS request
    WHERE EXISTS (
        SELECT FROM rota.lease
        WHERE lease.session = %(session)s::int8 AND request.job = ANY (lease.jobs))),
    served.queues, served.sessions,
    (SELECT json_agg(queue_setting) FROM rota.queue_setting),
    extract(epoch FROM clock_timestamp())::float8
FROM alive JOIN rota.session AS mine ON mine.id = alive.session
CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(queue), '{}') AS queues, coalesce(array_agg(id), '{}') AS sessions
    FROM (
        SELECT peer.id, queue FROM rota.session AS peer, unnest(peer.queues) AS queue
        WHERE queue = ANY (mine.queues) AND peer.tasks IS NOT DISTINCT FROM mine.tasks
          AND (peer.id = mine.id OR EXISTS (
            SELECT FROM rota.heartbeat
            WHERE heartbeat.session = peer.id
              AND heartbeat.at > statement_timestamp() - 0.6 * peer.timeout OFFSET 0))
        ORDER BY peer.id, queue
    ) AS one
) AS served
