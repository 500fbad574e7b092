-- Forget old signs of life, of all sessions up to one moment, and remember which it was. The newest
-- of a living session is never that old; and a session without any counts as silent, like one whose
-- newest is old.
-- Walks heartbeat_order, for each session from where the last round ended: before it, under an old
-- snapshot, lie the dead rows of earlier rounds. (Without OFFSET 0 a plan may look at these.)
WITH span AS MATERIALIZED (
    SELECT to_timestamp(trimmed.last_value) AS since, to_timestamp(up_to.second) AS until,
           up_to.second
    FROM rota.heartbeat_trimmed AS trimmed CROSS JOIN (
        SELECT extract(epoch FROM clock_timestamp()
                   - greatest(4 * max(timeout), interval '1 minute'))::int8 - 1 AS second
        FROM rota.session
    ) AS up_to
    WHERE up_to.second IS NOT NULL
), gone AS (
    DELETE FROM rota.heartbeat WHERE ctid = ANY (ARRAY(
        SELECT old.place FROM rota.session
        CROSS JOIN LATERAL (
            SELECT heartbeat.ctid AS place FROM rota.heartbeat
            WHERE heartbeat.session = session.id
              AND heartbeat.at >= (SELECT since FROM span) AND heartbeat.at < (SELECT until FROM span)
            OFFSET 0
        ) AS old))
)
SELECT setval('rota.heartbeat_trimmed', second) FROM span
