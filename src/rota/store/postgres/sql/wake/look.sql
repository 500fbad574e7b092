-- What there is to do, for an idle worker once a second: whether these queues have something to
-- claim (lanes of other tasks than these are left out), whether a session is silent, whether a ring is
-- untidy or a request to cancel is left over, in how many seconds the next cron entry is due, and the next
-- one that is not overdue (null: none, or not asked for); the server's clock; last, whether no worker of the group
-- has the watch (null: not asked for). One that goes to sleep in this very moment takes this look for a watch, and
-- does without.
-- Where there are many lanes a log that is not empty is untidy: it is left as soon as it is old enough.
-- Locks nothing and writes nothing. Walks what claim_probe.sql and rescue_lock.sql walk, each to its
-- first hit.
SELECT
    EXISTS (
        SELECT FROM rota.lane
        JOIN rota.queue ON queue.name = lane.queue
        CROSS JOIN LATERAL (
            SELECT place.xid, place.id, place.hole_xids, place.hole_ids
            FROM rota.cursor AS place WHERE place.lane = lane.id
            ORDER BY place.lane DESC, place.seq DESC LIMIT 1
        ) AS place
        WHERE lane.queue = ANY (%(queues)s::text[]) AND NOT lane.of_key AND NOT queue.paused
          AND (coalesce((
                SELECT true FROM rota.log AS job
                WHERE job.lane = lane.id AND (job.xid, job.id) > (place.xid, place.id)
                ORDER BY job.lane, job.xid, job.id LIMIT 1), false)
            OR coalesce((
                SELECT true
                FROM unnest(place.hole_xids, place.hole_ids) AS hole (xid, id)
                CROSS JOIN LATERAL (
                    SELECT FROM rota.log AS job
                    WHERE job.lane = lane.id AND job.xid = hole.xid AND job.id > hole.id LIMIT 1
                ) AS job
                LIMIT 1), false)
            OR (EXISTS (SELECT FROM rota.lane AS keyed
                        WHERE keyed.queue = lane.queue AND keyed.priority = lane.priority
                          AND keyed.of_key)
                AND EXISTS (SELECT FROM rota.lane_ready AS ready
                            WHERE ready.queue = lane.queue AND ready.priority = lane.priority
                              AND ready.lane <> ALL (ARRAY(
                                  SELECT id FROM rota.lane
                                  WHERE task IS NOT NULL AND task <> ALL (%(tasks)s::text[]))))))),
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
    EXISTS (SELECT FROM rota.cancel_request)
    OR EXISTS (
        SELECT FROM generate_series(0, 3) AS number
        JOIN pg_class AS segment ON segment.oid = ('rota.log_' || number)::regclass
        WHERE pg_relation_size(segment.oid) + coalesce(pg_relation_size(segment.reltoastrelid), 0)
            >= CASE WHEN number = (SELECT last_value %% 4 FROM rota.log_turn)
                         AND (SELECT few FROM rota.lane_few)
                    THEN %(log_size)s::int8 ELSE 1 END)
    OR EXISTS (
        SELECT FROM (
            SELECT 'cursor' AS name, last_value AS turn, %(cursor_size)s::int8 AS largest
            FROM rota.cursor_turn
            UNION ALL
            SELECT 'lease', last_value, %(lease_size)s::int8 FROM rota.lease_turn
            UNION ALL
            SELECT 'tally', last_value, %(tally_size)s::int8 FROM rota.tally_turn
            UNION ALL
            SELECT 'limit_start', last_value, %(limit_size)s::int8 FROM rota.limit_turn
        ) AS ring
        CROSS JOIN generate_series(0, 1) AS number
        JOIN pg_class AS slot ON slot.oid = format('rota.%%s_%%s', ring.name, number)::regclass
        WHERE pg_relation_size(slot.oid) + coalesce(pg_relation_size(slot.reltoastrelid), 0)
            >= CASE WHEN number = ring.turn %% 2 THEN ring.largest ELSE 1 END),
    CASE WHEN entry.due IS NOT NULL
         THEN greatest(0, extract(epoch FROM entry.due - clock_timestamp()))::float8 END,
    extract(epoch FROM entry.later - clock_timestamp())::float8,
    extract(epoch FROM clock_timestamp())::float8,
    CASE WHEN %(group)s::int4 IS NULL THEN false
         WHEN pg_try_advisory_lock(7682006, %(group)s::int4)
         THEN pg_advisory_unlock(7682006, %(group)s::int4)
         ELSE false END
FROM (
    SELECT min(cron.due) AS due,
           min(cron.due) FILTER (WHERE cron.due > clock_timestamp()) AS later
    FROM rota.cron WHERE %(cron)s::boolean AND NOT cron.paused AND NOT cron.undeclared
) AS entry
