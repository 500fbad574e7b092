-- The second half of a claim of the key lanes of one queue and priority: those beside the plain
-- lane `lane`. One statement, hence one snapshot. Does nothing unless keyed_lock.sql has the turn.
-- Goes round the lanes, beginning after the lane `after`, and looks at up to `share` jobs of each,
-- `most` in all, but for lanes of tasks that are not among `tasks` (null: all are); of these it
-- takes `size`: first the next job of every lane, then the second, as far as limits have places.
-- Per lane it does what claim.sql does. Writes one lease, a cursor entry for each lane, and what
-- started where a rate is limited.
-- Walks: lane_keyed in a circle or, where this queue and the whole database have more than 2,000
-- lanes, log_order from lane to lane, which passes those without rows; cursor_order and log_order
-- as claim.sql does, limit_start_order over a limit's window, and all leases, which their ring
-- keeps few. A start is dated after its window was looked at, so that no window anywhere has more.
-- (nr, turn) are a lane's number in this round and a job's in its lane. Where no two lanes share a
-- limit, a job's `seat` among its limit's places is its turn, without sorting. Unique jobs are
-- handed out, passed over and put aside as in claim_keyed.sql; those passed have a limit's place
-- until the next claim, and one row of nulls says that there was nothing else.
-- IS TRUE keeps the planner from making joins of IN, which would not be hashed.
WITH plain AS MATERIALIZED (
    SELECT queue, priority FROM rota.lane
    WHERE id = %(lane)s::int4
      AND current_setting('rota.locked_keys', true) = %(lane)s::int4::text
), unknown AS MATERIALIZED (
    SELECT id FROM rota.lane WHERE task IS NOT NULL AND task <> ALL (%(tasks)s::text[])
), walk AS MATERIALIZED (
    SELECT (SELECT few FROM rota.lane_few) OR (
        SELECT count(*) <= 2000 FROM (
            SELECT FROM rota.lane
            WHERE queue = (SELECT queue FROM plain) AND priority = (SELECT priority FROM plain)
              AND of_key
            LIMIT 2001
        ) AS lane) AS few
), seen AS MATERIALIZED (
    SELECT open.nr, open.lane, open.limit_id, open.limit_key, open.rated, open.places, open.seq,
           open.xid AS from_xid, open.id AS from_id, open.taken, open.hole_xids, open.hole_ids,
           part.size, job.*
    FROM (
        SELECT row_number() OVER () AS nr, lane.*
        FROM (VALUES (%(after)s::int4, 2147483647), (0, %(after)s::int4)) AS arc (beyond, up_to)
        CROSS JOIN LATERAL (
            (SELECT * FROM rota.lane_open
             WHERE (SELECT few FROM walk)
               AND queue = (SELECT queue FROM plain) AND priority = (SELECT priority FROM plain)
               AND lane > arc.beyond AND lane <= arc.up_to
               AND lane <> ALL (ARRAY(SELECT id FROM unknown))
             ORDER BY lane)
            UNION ALL
            (WITH RECURSIVE used AS (
                (SELECT job.lane FROM rota.log AS job
                 WHERE job.lane > arc.beyond AND NOT (SELECT few FROM walk)
                 ORDER BY job.lane, job.xid, job.id LIMIT 1)
                UNION ALL
                SELECT next.lane FROM used
                CROSS JOIN LATERAL (
                    SELECT job.lane FROM rota.log AS job WHERE job.lane > used.lane
                    ORDER BY job.lane, job.xid, job.id LIMIT 1
                ) AS next
                WHERE used.lane < arc.up_to
             )
             SELECT lane.*
             FROM used
             CROSS JOIN LATERAL (
                SELECT queue, priority FROM rota.lane WHERE lane.id = used.lane LIMIT 1
             ) AS here
             CROSS JOIN LATERAL (
                SELECT * FROM rota.lane_open WHERE lane_open.lane = used.lane LIMIT 1
             ) AS lane
             WHERE used.lane <= arc.up_to AND used.lane <> ALL (ARRAY(SELECT id FROM unknown))
               AND here.queue = (SELECT queue FROM plain)
               AND here.priority = (SELECT priority FROM plain))
        ) AS lane
    ) AS open
    CROSS JOIN LATERAL (SELECT least(open.places, %(share)s::int8) AS size OFFSET 0) AS part
    CROSS JOIN LATERAL (
        SELECT row_number() OVER () AS turn, job.*
        FROM (
            (SELECT true AS late, job.*
             FROM (
                SELECT hole.xid, hole.id
                FROM unnest(open.hole_xids, open.hole_ids) AS hole (xid, id)
                WHERE pg_visible_in_snapshot(hole.xid, pg_current_snapshot())
                ORDER BY hole.xid
             ) AS hole
             CROSS JOIN LATERAL (
                SELECT job.xid, job.id, job.task, job.args::text AS args, job.attempt,
                       job.max_attempts, job.timeout, job.enqueued_at, job.entry, job.unique_key,
                       (job.errors -> -1 ->> 'suspects')::int4 AS suspects, job.headers::text AS headers
                FROM rota.log AS job
                WHERE job.lane = open.lane AND job.xid = hole.xid AND job.id > hole.id
                ORDER BY job.lane, job.xid, job.id LIMIT part.size
             ) AS job
             WHERE open.hole_xids <> '{}')
            UNION ALL
            (SELECT false, job.xid, job.id, job.task, job.args::text AS args, job.attempt,
                    job.max_attempts, job.timeout, job.enqueued_at, job.entry, job.unique_key,
                    (job.errors -> -1 ->> 'suspects')::int4 AS suspects, job.headers::text AS headers
             FROM rota.log AS job
             WHERE job.lane = open.lane AND (job.xid, job.id) > (open.xid, open.id)
             ORDER BY job.lane, job.xid, job.id)
        ) AS job
        LIMIT part.size
    ) AS job
    LIMIT %(most)s::int8
), sharing AS MATERIALIZED (
    SELECT count(*) = count(DISTINCT limit_id) AS alone FROM seen WHERE turn = 1 AND limit_id <> 0
), chosen AS MATERIALIZED (
    SELECT *, seat = places AS fills
    FROM (
        SELECT *, turn AS seat FROM seen WHERE (SELECT alone FROM sharing)
        UNION ALL
        SELECT *, row_number() OVER (PARTITION BY limit_id ORDER BY turn, nr)
        FROM seen WHERE NOT (SELECT alone FROM sharing)
    ) AS seated
    WHERE coalesce(seat <= places, true)
    ORDER BY turn, nr LIMIT %(size)s::int8
), named AS MATERIALIZED (
    SELECT chosen.id, chosen.entry, held.key, held.task
    FROM chosen JOIN rota.unique_key AS held
      ON held.key = chosen.unique_key AND held.task = chosen.task AND held.job = chosen.id
     AND held.entry = chosen.entry
    WHERE chosen.unique_key IS NOT NULL
), key AS MATERIALIZED (
    SELECT named.id, named.entry, held.key, held.task,
           held.while_waiting AND coalesce(held.until <= now(), true) AS free
    FROM named JOIN rota.unique_key AS held
      ON held.key = named.key AND held.task = named.task AND held.job = named.id
     AND held.entry = named.entry
    FOR UPDATE OF held SKIP LOCKED
), begun AS (
    UPDATE rota.unique_key AS held SET state = 'running' FROM key
    WHERE held.key = key.key AND held.task = key.task AND NOT key.free
), freed AS (
    DELETE FROM rota.unique_key AS held USING key
    WHERE held.key = key.key AND held.task = key.task AND key.free
), run AS NOT MATERIALIZED (
    SELECT * FROM chosen
    WHERE unique_key IS NULL OR ((id, entry) IN (SELECT id, entry FROM key)) IS TRUE
), passed AS MATERIALIZED (
    SELECT nr FROM chosen
    WHERE unique_key IS NOT NULL AND ((id, entry) IN (SELECT id, entry FROM key)) IS NOT TRUE
), aside AS (
    INSERT INTO rota.timer (id, run_at, enqueued_at, lane, entry, timeout, attempt, max_attempts,
                            state, task, args, errors, unique_key, iteration, last_run, headers)
    SELECT job.id, clock_timestamp() + interval '0.25 seconds', job.enqueued_at, job.lane, job.entry,
           job.timeout, job.attempt, job.max_attempts, 'available', job.task, job.args, job.errors,
           job.unique_key, job.iteration, job.last_run, job.headers
    FROM named
    CROSS JOIN LATERAL (
        SELECT entry.* FROM rota.log AS entry
        WHERE entry.id = named.id AND entry.entry = named.entry LIMIT 1
    ) AS job
    WHERE ((named.id, named.entry) IN (SELECT id, entry FROM key)) IS NOT TRUE
), last AS MATERIALIZED (
    -- The last job of each lane. If it came from a hole, there may be more in it, unless all was
    -- seen.
    SELECT seen.*, late AND (
               turn >= size OR nr = (SELECT max(nr) FROM seen)
               OR EXISTS (SELECT FROM seen AS more WHERE more.nr = seen.nr AND more.turn > seen.turn)
           ) AS cuts
    FROM seen WHERE ((nr, turn) IN (SELECT nr, max(turn) FROM chosen GROUP BY nr)) IS TRUE
), lease AS (
    INSERT INTO rota.lease (slot, session, lane, jobs, limits)
    SELECT (SELECT last_value %% 2 FROM rota.lease_turn), %(session)s::int8, %(lane)s::int4,
           array_agg(id), CASE WHEN bool_or(limit_id <> 0) THEN array_agg(limit_id) END
    FROM (SELECT id, limit_id FROM run ORDER BY id) AS run
    HAVING count(*) > 0
    RETURNING id
), running AS MATERIALIZED (
    SELECT pg_snapshot_xip(pg_current_snapshot()) AS xid UNION ALL SELECT pg_current_xact_id()
), moved AS (
    INSERT INTO rota.cursor (slot, lane, seq, xid, id, taken, hole_xids, hole_ids)
    SELECT (SELECT last_value %% 2 FROM rota.cursor_turn), last.lane, last.seq + 1,
           coalesce(reached.xid, place.xid), coalesce(reached.id, place.id),
           last.taken + last.turn - (SELECT count(*) FROM passed WHERE passed.nr = last.nr),
           hole.xids, hole.ids
    FROM last
    CROSS JOIN LATERAL (
        SELECT last.from_xid AS xid, last.from_id AS id, last.hole_xids, last.hole_ids
    ) AS place
    CROSS JOIN LATERAL (
        SELECT CASE WHEN NOT last.late THEN last.xid END AS xid,
               CASE WHEN NOT last.late THEN last.id END AS id
    ) AS reached
    CROSS JOIN LATERAL (
        SELECT CASE WHEN last.cuts THEN last.xid END AS xid,
               CASE WHEN last.cuts THEN last.id END AS id
    ) AS cut
    CROSS JOIN LATERAL (
        SELECT place.hole_xids <> '{}' OR EXISTS (
            SELECT FROM running
            WHERE running.xid > place.xid AND running.xid < reached.xid) AS holes
    ) AS has
    CROSS JOIN LATERAL (
        SELECT '{}'::xid8[] AS xids, '{}'::int8[] AS ids WHERE NOT has.holes
        UNION ALL
        SELECT * FROM (
            SELECT coalesce(array_agg(hole.xid ORDER BY hole.xid), '{}'),
                   coalesce(array_agg(hole.id ORDER BY hole.xid), '{}')
            FROM (
                -- The holes of the new cursor: begin. The text is the same in all three claims.
                SELECT hole.xid, CASE WHEN hole.xid = cut.xid THEN cut.id ELSE hole.id END AS id
                FROM unnest(place.hole_xids, place.hole_ids) AS hole (xid, id)
                WHERE NOT pg_visible_in_snapshot(hole.xid, pg_current_snapshot()) OR hole.xid >= cut.xid
                UNION ALL
                SELECT running.xid, 0 FROM running
                WHERE running.xid > place.xid AND running.xid < reached.xid
                -- The holes of the new cursor: end.
            ) AS hole
            OFFSET 0
        ) AS hole
        WHERE has.holes
    ) AS hole
), started AS (
    INSERT INTO rota.limit_start (slot, limit_id, at, jobs)
    SELECT (SELECT last_value %% 2 FROM rota.limit_turn), limit_id, clock_timestamp(), count(*)
    FROM run WHERE rated GROUP BY limit_id
)
SELECT run.id, lease.id, run.task, run.args, run.attempt + 1, run.max_attempts, run.timeout,
       date_part('epoch', run.enqueued_at), run.suspects, run.headers, run.unique_key, run.limit_id <> 0,
       CASE WHEN run.fills THEN run.limit_key END,
       run.lane
FROM (SELECT FROM last LIMIT 1) AS moved
LEFT JOIN (run CROSS JOIN lease) ON true
ORDER BY run.turn, run.nr
