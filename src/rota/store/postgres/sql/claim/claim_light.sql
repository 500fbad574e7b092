-- claim.sql for light work: nothing is in any segment of the log but one, and the cursor has no
-- holes. Else it does nothing, and one row without a job says which segment is the current one. The
-- numbers of the segments are put in when the statement is read: 0 stands for the one.
-- Whatever this snapshot shows was written before, and a segment is truncated only when nothing in
-- it counts: so an empty one has nothing for this claim.
-- Walks: cursor_order from its right end, the segment's part of log_order from the cursor on.
WITH place AS MATERIALIZED (
    SELECT place.seq, place.xid, place.id, place.taken,
           place.hole_xids = '{}'
           AND pg_relation_size('rota.log_1') = 0 AND pg_relation_size('rota.log_2') = 0
           AND pg_relation_size('rota.log_3') = 0 AS light
    FROM rota.cursor AS place WHERE place.lane = %(lane)s::int4
      AND current_setting('rota.locked_lane', true) = %(lane)s::int4::text
    ORDER BY place.lane DESC, place.seq DESC LIMIT 1
), taken AS MATERIALIZED (
    SELECT job.xid, job.id, job.task, job.args::text AS args, job.attempt,
           job.max_attempts, job.timeout, job.enqueued_at,
           (job.errors -> -1 ->> 'suspects')::int4 AS suspects, job.headers::text AS headers
    FROM rota.log_0 AS job
    WHERE job.lane = %(lane)s::int4
      AND (job.xid, job.id) > ((SELECT xid FROM place WHERE light), (SELECT id FROM place WHERE light))
    ORDER BY job.lane, job.xid, job.id
    LIMIT %(size)s::int8
), reached AS MATERIALIZED (
    SELECT xid, id FROM taken ORDER BY xid DESC, id DESC LIMIT 1
), hole AS (
    SELECT running.xid
    FROM (
        SELECT pg_snapshot_xip(pg_current_snapshot()) AS xid UNION ALL SELECT pg_current_xact_id()
    ) AS running, place, reached
    WHERE running.xid > place.xid AND running.xid < reached.xid
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
           reached.xid, reached.id, place.taken + (SELECT count(*) FROM taken),
           coalesce((SELECT array_agg(xid ORDER BY xid) FROM hole), '{}'),
           coalesce((SELECT array_agg(0::int8) FROM hole), '{}')
    FROM place, reached
)
SELECT taken.id, CASE WHEN place.light THEN lease.id
                      ELSE (SELECT last_value %% 4 FROM rota.log_turn) END,
       taken.task, taken.args, taken.attempt + 1, taken.max_attempts,
       taken.timeout, date_part('epoch', taken.enqueued_at), taken.suspects, taken.headers
FROM place LEFT JOIN (taken CROSS JOIN lease) ON place.light
WHERE taken.id IS NOT NULL OR NOT place.light
ORDER BY taken.xid, taken.id
