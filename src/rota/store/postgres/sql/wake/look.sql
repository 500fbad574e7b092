-- What there is to do, for an idle worker when it is its turn: whether these queues have something
-- to claim (null: available.sql has to say it), and the log's current segment; whether a session is
-- silent; in how many seconds the timer needs a staging (see due.sql); in how many the next cron
-- entry is due, and the next one that is not overdue (null: none, or not asked for); the server's
-- clock; whether no worker of the group has the watch (null: not asked for); whether the minute
-- that is over is not recorded; last, whether something is to be decided of flows. One that goes to
-- sleep in this very moment takes this look for a watch, and does without.
-- For light work as claim_light.sql: nothing is in any segment of the log but one, no cursor has
-- holes, and there are no key lanes. The numbers of the segments are put in when the statement is
-- read: 0 stands for the one.
-- Locks nothing and writes nothing. Walks what claim_light.sql, rescue_lock.sql and stage.sql walk,
-- each to its first hit.
SELECT
    CASE WHEN pg_relation_size('rota.log_1') = 0 AND pg_relation_size('rota.log_2') = 0
              AND pg_relation_size('rota.log_3') = 0
         THEN true = ANY (ARRAY(
            SELECT CASE
                WHEN place.hole_xids <> '{}'
                  OR EXISTS (SELECT FROM rota.lane AS keyed
                             WHERE keyed.queue = lane.queue AND keyed.priority = lane.priority
                               AND keyed.of_key)
                THEN NULL
                ELSE coalesce((
                    SELECT true FROM rota.log_0 AS job
                    WHERE job.lane = lane.id AND (job.xid, job.id) > (place.xid, place.id)
                    ORDER BY job.lane, job.xid, job.id LIMIT 1), false)
                END
            FROM rota.lane
            JOIN rota.queue ON queue.name = lane.queue
            CROSS JOIN LATERAL (
                SELECT place.xid, place.id, place.hole_xids
                FROM rota.cursor AS place WHERE place.lane = lane.id
                ORDER BY place.lane DESC, place.seq DESC LIMIT 1
            ) AS place
            WHERE lane.queue = ANY (%(queues)s::text[]) AND NOT lane.of_key AND NOT queue.paused)) END,
    (SELECT last_value %% 4 FROM rota.log_turn)::int4,
    EXISTS (
        SELECT FROM rota.session
        CROSS JOIN LATERAL (
            SELECT now, now - session.timeout AS since FROM clock_timestamp() AS now) AS silence
        WHERE pg_postmaster_start_time() NOT BETWEEN silence.since AND silence.now
          AND NOT EXISTS (
            SELECT FROM rota.heartbeat
            WHERE heartbeat.session = session.id AND heartbeat.at > silence.since
              AND heartbeat.at <= silence.now OFFSET 0)
          AND (session.timeline IS NULL OR EXISTS (
            SELECT FROM rota.here JOIN rota.session AS new ON new.timeline = here.timeline
            WHERE here.timeline = session.timeline OR new.started_at < silence.since))),
    (
        -- Due: begin. The text is the same as in due.sql.
        WITH mark AS MATERIALIZED (
            SELECT run_at, id, snapshot FROM rota.timer_mark ORDER BY seq DESC LIMIT 1
        ), said AS MATERIALIZED (
            SELECT snapshot FROM rota.signal_mark ORDER BY seq DESC LIMIT 1
        )
        SELECT CASE
            WHEN EXISTS (SELECT FROM rota.timer
                         WHERE timer.xid >= (SELECT pg_snapshot_xmax(snapshot) FROM mark))
              OR EXISTS (
                SELECT FROM (SELECT pg_snapshot_xip(snapshot) AS xid FROM mark) AS running
                CROSS JOIN LATERAL (
                    SELECT timer.id, timer.run_at FROM rota.timer
                    WHERE timer.xid = running.xid ORDER BY timer.xid
                ) AS timer
                WHERE (timer.run_at, timer.id) <= ((SELECT run_at FROM mark), (SELECT id FROM mark)))
              OR EXISTS (SELECT FROM rota.memory
                         WHERE memory.xid >= (SELECT pg_snapshot_xmax(snapshot) FROM said))
              OR EXISTS (
                SELECT FROM (SELECT pg_snapshot_xip(snapshot) AS xid FROM said) AS running
                CROSS JOIN LATERAL (
                    SELECT memory.job FROM rota.memory WHERE memory.xid = running.xid ORDER BY memory.xid
                ) AS memory)
            THEN 0
            ELSE (
                SELECT greatest(0, extract(epoch FROM timer.run_at - clock_timestamp()))::float8
                FROM rota.timer
                WHERE (timer.run_at, timer.id) > ((SELECT run_at FROM mark), (SELECT id FROM mark))
                ORDER BY timer.run_at, timer.id LIMIT 1)
        END
        -- Due: end.
    ),
    CASE WHEN entry.due IS NOT NULL
         THEN greatest(0, extract(epoch FROM entry.due - clock_timestamp()))::float8 END,
    extract(epoch FROM entry.later - clock_timestamp())::float8,
    extract(epoch FROM clock_timestamp())::float8,
    CASE WHEN %(group)s::int4 IS NULL THEN false
         WHEN pg_try_advisory_lock(7682006, %(group)s::int4)
         THEN pg_advisory_unlock(7682006, %(group)s::int4)
         ELSE false END,
    (SELECT last_value FROM rota.history_recorded) <> floor(extract(epoch FROM clock_timestamp()) / 60)::int8 - 1,
    (
        -- As fresh.sql and stops.sql.
        WITH mark AS MATERIALIZED (
            SELECT snapshot FROM rota.flow_mark ORDER BY seq DESC LIMIT 1
        )
        SELECT EXISTS (SELECT FROM rota.flow_arrival WHERE xid >= (SELECT pg_snapshot_xmax(snapshot) FROM mark))
            OR EXISTS (SELECT FROM rota.flow_fact WHERE xid >= (SELECT pg_snapshot_xmax(snapshot) FROM mark))
            OR EXISTS (
                SELECT FROM (SELECT pg_snapshot_xip(snapshot) AS xid FROM mark) AS running
                WHERE EXISTS (SELECT FROM rota.flow_arrival WHERE flow_arrival.xid = running.xid)
                   OR EXISTS (SELECT FROM rota.flow_fact WHERE flow_fact.xid = running.xid))
            OR EXISTS (SELECT FROM rota.flow_stop WHERE next <= clock_timestamp())
    )
FROM (
    SELECT min(cron.due) AS due,
           min(cron.due) FILTER (WHERE cron.due > clock_timestamp()) AS later
    FROM rota.cron WHERE %(cron)s::boolean AND NOT cron.paused AND NOT cron.undeclared
) AS entry
