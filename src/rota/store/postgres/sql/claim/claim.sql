-- The second half of a claim: one statement, hence one snapshot. Does nothing unless
-- claim_lock.sql has locked the lane in this transaction.
-- Takes rows of holes whose transaction has ended, then rows past the cursor in log order (MVCC
-- hides those of running transactions); writes one lease and one cursor entry.
-- Walks: cursor_order from its right end, log_order from the cursor on. Never sorts the backlog.
--
-- The new cursor is the last row past the old one. The new holes are: old ones still running; old
-- ones that `size` cut short, with the last id taken; and every transaction that is running in
-- this snapshot (or is this one) and lies between the old cursor and the new.
WITH place AS MATERIALIZED (
    SELECT place.seq, place.xid, place.id, place.taken, place.hole_xids, place.hole_ids
    FROM rota.cursor AS place WHERE place.lane = %(lane)s::int4
      AND current_setting('rota.locked_lane', true) = %(lane)s::int4::text
    ORDER BY place.lane DESC, place.seq DESC LIMIT 1
), ended AS MATERIALIZED (
    SELECT hole.xid, hole.id
    FROM place, unnest(place.hole_xids, place.hole_ids) AS hole (xid, id)
    WHERE pg_visible_in_snapshot(hole.xid, pg_current_snapshot())
), late AS MATERIALIZED (
    SELECT job.*
    FROM (SELECT xid, id FROM ended ORDER BY xid) AS hole
    CROSS JOIN LATERAL (
        SELECT job.xid, job.id, job.task, job.args::text AS args, job.attempt,
               job.max_attempts, job.timeout, job.enqueued_at,
               (job.errors -> -1 ->> 'suspects')::int4 AS suspects, job.headers::text AS headers
        FROM rota.log AS job
        WHERE job.lane = %(lane)s::int4 AND job.xid = hole.xid AND job.id > hole.id
        ORDER BY job.lane, job.xid, job.id LIMIT %(size)s::int8
    ) AS job
    LIMIT %(size)s::int8
), next AS MATERIALIZED (
    SELECT job.xid, job.id, job.task, job.args::text AS args, job.attempt,
           job.max_attempts, job.timeout, job.enqueued_at,
           (job.errors -> -1 ->> 'suspects')::int4 AS suspects, job.headers::text AS headers
    FROM rota.log AS job
    WHERE job.lane = %(lane)s::int4
      AND (job.xid, job.id) > ((SELECT xid FROM place), (SELECT id FROM place))
    ORDER BY job.lane, job.xid, job.id
    LIMIT %(size)s::int8 - (SELECT count(*) FROM late)
), taken AS (
    SELECT * FROM late UNION ALL SELECT * FROM next
), reached AS MATERIALIZED (
    SELECT xid, id FROM next ORDER BY xid DESC, id DESC LIMIT 1
), cut AS MATERIALIZED (
    SELECT late.xid, max(late.id) AS id FROM late
    WHERE (SELECT count(*) FROM late) >= %(size)s::int8
    GROUP BY late.xid ORDER BY late.xid DESC LIMIT 1
), running AS MATERIALIZED (
    SELECT pg_snapshot_xip(pg_current_snapshot()) AS xid UNION ALL SELECT pg_current_xact_id()
), hole AS (
    SELECT hole.xid, hole.id
    FROM place LEFT JOIN reached ON true LEFT JOIN cut ON true
    CROSS JOIN LATERAL (
        -- The holes of the new cursor: begin. The text is the same in all three claims.
        SELECT hole.xid, CASE WHEN hole.xid = cut.xid THEN cut.id ELSE hole.id END AS id
        FROM unnest(place.hole_xids, place.hole_ids) AS hole (xid, id)
        WHERE NOT pg_visible_in_snapshot(hole.xid, pg_current_snapshot()) OR hole.xid >= cut.xid
        UNION ALL
        SELECT running.xid, 0 FROM running
        WHERE running.xid > place.xid AND running.xid < reached.xid
        -- The holes of the new cursor: end.
    ) AS hole
), lease AS (
    INSERT INTO rota.lease (slot, session, lane, jobs)
    SELECT (SELECT last_value %% 2 FROM rota.lease_turn), %(session)s::int8, %(lane)s::int4,
           array_agg(id ORDER BY id)
    FROM taken
    HAVING count(*) > 0
    RETURNING id
), moved AS (
    INSERT INTO rota.cursor (slot, lane, seq, xid, id, taken, hole_xids, hole_ids)
    SELECT (SELECT last_value %% 2 FROM rota.cursor_turn), %(lane)s::int4, place.seq + 1,
           coalesce((SELECT xid FROM reached), place.xid),
           coalesce((SELECT id FROM reached), place.id),
           place.taken + (SELECT count(*) FROM taken),
           coalesce((SELECT array_agg(xid ORDER BY xid) FROM hole), '{}'),
           coalesce((SELECT array_agg(id ORDER BY xid) FROM hole), '{}')
    FROM place WHERE EXISTS (SELECT FROM taken)
)
SELECT taken.id, lease.id, taken.task, taken.args, taken.attempt + 1, taken.max_attempts,
       taken.timeout, date_part('epoch', taken.enqueued_at), taken.suspects, taken.headers
FROM taken, lease
ORDER BY taken.xid, taken.id
