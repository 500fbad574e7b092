-- claim.sql for unique lanes: those in which jobs with unique keys were ever enqueued. What is
-- explained there is not explained here.
--
-- Entries of unique jobs are handed out if the row of their key names them; it is locked without
-- waiting. Void ones are passed over. Where a replacement is under way the job is put aside, into
-- the timer: `seen` is what this snapshot sees, `key` what of it no transaction has locked or
-- changed. IS TRUE keeps the planner from making a join of IN, which would not be hashed.
-- One row of nulls: entries were passed and there was nothing to hand out.
WITH place AS MATERIALIZED (
    SELECT place.seq, place.xid, place.id, place.taken, place.hole_xids, place.hole_ids
    FROM rota.cursor AS place WHERE place.lane = %(lane)s::int4
      AND current_setting('rota.locked_lane', true) = %(lane)s::int4 || ' keyed'
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
               job.max_attempts, job.timeout, job.enqueued_at, job.entry, job.unique_key,
               (job.errors -> -1 ->> 'suspects')::int4 AS suspects, job.headers::text AS headers
        FROM rota.log AS job
        WHERE job.lane = %(lane)s::int4 AND job.xid = hole.xid AND job.id > hole.id
        ORDER BY job.lane, job.xid, job.id LIMIT %(size)s::int8
    ) AS job
    LIMIT %(size)s::int8
), next AS MATERIALIZED (
    SELECT job.xid, job.id, job.task, job.args::text AS args, job.attempt,
           job.max_attempts, job.timeout, job.enqueued_at, job.entry, job.unique_key,
           (job.errors -> -1 ->> 'suspects')::int4 AS suspects, job.headers::text AS headers
    FROM rota.log AS job
    WHERE job.lane = %(lane)s::int4
      AND (job.xid, job.id) > ((SELECT xid FROM place), (SELECT id FROM place))
    ORDER BY job.lane, job.xid, job.id
    LIMIT %(size)s::int8 - (SELECT count(*) FROM late)
), taken AS (
    SELECT * FROM late UNION ALL SELECT * FROM next
), seen AS MATERIALIZED (
    SELECT taken.id, taken.entry, held.key, held.task, held.while_waiting, held.until
    FROM taken JOIN rota.unique_key AS held
      ON held.key = taken.unique_key AND held.task = taken.task AND held.job = taken.id
     AND held.entry = taken.entry
    WHERE taken.unique_key IS NOT NULL
), key AS MATERIALIZED (
    SELECT seen.id, seen.entry, held.key, held.task,
           held.while_waiting AND coalesce(held.until <= now(), true) AS free
    FROM seen JOIN rota.unique_key AS held
      ON held.key = seen.key AND held.task = seen.task AND held.job = seen.id
     AND held.entry = seen.entry
    FOR UPDATE OF held SKIP LOCKED
), started AS (
    UPDATE rota.unique_key AS held SET state = 'running' FROM key
    WHERE held.key = key.key AND held.task = key.task AND NOT key.free
), freed AS (
    DELETE FROM rota.unique_key AS held USING key
    WHERE held.key = key.key AND held.task = key.task AND key.free
), run AS MATERIALIZED (
    SELECT * FROM taken
    WHERE unique_key IS NULL OR ((id, entry) IN (SELECT id, entry FROM key)) IS TRUE
), aside AS (
    INSERT INTO rota.timer (id, run_at, enqueued_at, lane, entry, timeout, attempt, max_attempts,
                            state, task, args, errors, unique_key, iteration, last_run, headers)
    SELECT job.id, clock_timestamp() + interval '0.25 seconds', job.enqueued_at, job.lane, job.entry,
           job.timeout, job.attempt, job.max_attempts, 'available', job.task, job.args, job.errors,
           job.unique_key, job.iteration, job.last_run, job.headers
    FROM seen
    CROSS JOIN LATERAL (
        SELECT entry.* FROM rota.log AS entry WHERE entry.id = seen.id AND entry.entry = seen.entry LIMIT 1
    ) AS job
    WHERE ((seen.id, seen.entry) IN (SELECT id, entry FROM key)) IS NOT TRUE
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
    FROM run
    HAVING count(*) > 0
    RETURNING id
), moved AS (
    INSERT INTO rota.cursor (slot, lane, seq, xid, id, taken, hole_xids, hole_ids)
    SELECT (SELECT last_value %% 2 FROM rota.cursor_turn), %(lane)s::int4, place.seq + 1,
           coalesce((SELECT xid FROM reached), place.xid),
           coalesce((SELECT id FROM reached), place.id),
           place.taken + (SELECT count(*) FROM run),
           coalesce((SELECT array_agg(xid ORDER BY xid) FROM hole), '{}'),
           coalesce((SELECT array_agg(id ORDER BY xid) FROM hole), '{}')
    FROM place WHERE EXISTS (SELECT FROM taken)
    RETURNING seq
)
SELECT run.id, lease.id, run.task, run.args, run.attempt + 1, run.max_attempts, run.timeout,
       date_part('epoch', run.enqueued_at), run.suspects, run.headers, run.unique_key
FROM moved LEFT JOIN (run CROSS JOIN lease) ON true
ORDER BY run.xid, run.id
