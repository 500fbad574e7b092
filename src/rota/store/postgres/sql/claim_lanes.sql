-- The second half of a claim of the keyed lanes of one queue and priority: those beside the plain lane
-- `lane`. One statement, hence one snapshot. Does nothing unless keyed_lock.sql has the turn.
-- Goes round the lanes from the one after `after` on, and looks at up to `share` jobs of each, `most` in
-- all; of these it takes `size`: first of every lane the next one, then the second one, as far as
-- limits have places. Per lane it does what claim.sql does. Writes one lease, a cursor entry for each
-- lane, and what started where a rate is limited.
-- Walks: lane_keyed in a circle, cursor_order and log_order as claim.sql does, limit_start_order over
-- a limit's window, and all leases, which their ring keeps few. A start is dated after its window was
-- looked at, so that no window anywhere has more.
-- What is long is carried along once: the rest works with (nr, turn), a lane's number in this round and a
-- job's in its lane. IS TRUE keeps the planner from making joins of IN, which would not be hashed.
WITH plain AS MATERIALIZED (
    SELECT queue, priority FROM rota.lane
    WHERE id = %(lane)s::int4
      AND current_setting('rota.locked_keys', true) = %(lane)s::int4::text
), seen AS MATERIALIZED (
    SELECT open.nr, open.lane, open.limit_id, open.rated, open.places, open.seq,
           open.xid AS from_xid, open.id AS from_id, open.taken, open.hole_xids, open.hole_ids,
           part.size, job.*
    FROM (
        SELECT row_number() OVER () AS nr, lane.*
        FROM (
            (SELECT * FROM rota.lane_open
             WHERE queue = (SELECT queue FROM plain) AND priority = (SELECT priority FROM plain)
               AND lane > %(after)s::int4 ORDER BY lane)
            UNION ALL
            (SELECT * FROM rota.lane_open
             WHERE queue = (SELECT queue FROM plain) AND priority = (SELECT priority FROM plain)
               AND lane <= %(after)s::int4 ORDER BY lane)
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
                       job.max_attempts, job.timeout, job.enqueued_at
                FROM rota.log AS job
                WHERE job.lane = open.lane AND job.xid = hole.xid AND job.id > hole.id
                ORDER BY job.lane, job.xid, job.id LIMIT part.size
             ) AS job)
            UNION ALL
            (SELECT false, job.xid, job.id, job.task, job.args::text AS args, job.attempt,
                    job.max_attempts, job.timeout, job.enqueued_at
             FROM rota.log AS job
             WHERE job.lane = open.lane AND (job.xid, job.id) > (open.xid, open.id)
             ORDER BY job.lane, job.xid, job.id)
        ) AS job
        LIMIT part.size
    ) AS job
    LIMIT %(most)s::int8
), chosen AS MATERIALIZED (
    SELECT nr, turn, id, limit_id, rated
    FROM (
        SELECT nr, turn, id, limit_id, rated, places,
               row_number() OVER (PARTITION BY limit_id ORDER BY turn, nr) AS seat
        FROM seen
    ) AS seated
    WHERE coalesce(seat <= places, true)
    ORDER BY turn, nr LIMIT %(size)s::int8
), reached AS MATERIALIZED (
    -- The last job of each lane. If it came from a hole, there may be more in it, unless all was seen.
    SELECT seen.*, late AND (
               turn >= size OR nr = (SELECT max(nr) FROM seen)
               OR EXISTS (SELECT FROM seen AS more WHERE more.nr = seen.nr AND more.turn > seen.turn)
           ) AS cut
    FROM seen WHERE ((nr, turn) IN (SELECT nr, max(turn) FROM chosen GROUP BY nr)) IS TRUE
), lease AS (
    INSERT INTO rota.lease (slot, session, lane, jobs, limits)
    SELECT (SELECT last_value %% 2 FROM rota.lease_turn), %(session)s::int8, %(lane)s::int4,
           array_agg(id), CASE WHEN bool_or(limit_id <> 0) THEN array_agg(limit_id) END
    FROM (SELECT id, limit_id FROM chosen ORDER BY id) AS chosen
    HAVING count(*) > 0
    RETURNING id
), moved AS (
    INSERT INTO rota.cursor (slot, lane, seq, xid, id, taken, hole_xids, hole_ids)
    SELECT (SELECT last_value %% 2 FROM rota.cursor_turn), reached.lane, reached.seq + 1,
           CASE WHEN reached.late THEN reached.from_xid ELSE reached.xid END,
           CASE WHEN reached.late THEN reached.from_id ELSE reached.id END,
           reached.taken + reached.turn, hole.xids, hole.ids
    FROM reached
    CROSS JOIN LATERAL (
        SELECT coalesce(array_agg(hole.xid ORDER BY hole.xid), '{}') AS xids,
               coalesce(array_agg(hole.id ORDER BY hole.xid), '{}') AS ids
        FROM (
            SELECT hole.xid, CASE WHEN hole.xid = reached.xid AND reached.cut THEN reached.id
                                  ELSE hole.id END AS id
            FROM unnest(reached.hole_xids, reached.hole_ids) AS hole (xid, id)
            WHERE NOT pg_visible_in_snapshot(hole.xid, pg_current_snapshot())
               OR (reached.cut AND hole.xid >= reached.xid)
            UNION ALL
            SELECT running.xid, 0
            FROM (
                SELECT pg_snapshot_xip(pg_current_snapshot()) UNION ALL SELECT pg_current_xact_id()
            ) AS running (xid)
            WHERE NOT reached.late AND running.xid > reached.from_xid AND running.xid < reached.xid
        ) AS hole
    ) AS hole
), started AS (
    INSERT INTO rota.limit_start (slot, limit_id, at, jobs)
    SELECT (SELECT last_value %% 2 FROM rota.limit_turn), limit_id, clock_timestamp(), count(*)
    FROM chosen WHERE rated GROUP BY limit_id
)
SELECT seen.id, lease.id, seen.task, seen.args, seen.attempt + 1, seen.max_attempts, seen.timeout,
       extract(epoch FROM seen.enqueued_at)::float8, seen.limit_id <> 0, seen.lane
FROM seen, lease
WHERE ((seen.nr, seen.turn) IN (SELECT nr, turn FROM chosen)) IS TRUE
ORDER BY seen.turn, seen.nr
