-- Append every job that is available or was leased once more, under this cluster's numbers, and
-- remove all other entries: one statement, hence one snapshot, so that what a producer commits
-- meanwhile is neither taken nor removed. All lanes are locked.
-- Jobs that were enqueued here since the restore may stand before their lane's cursor. What tells
-- them is xmin, which no dump and no subscription carries. A row was surely written by the restore
-- if it names a later transaction than the one that wrote it, if that one wrote rows of several
-- transactions, or if it is an entry of a claim or the row in `origin`: all of these are older than
-- what was enqueued after it.
-- So a job counts as enqueued here if its transaction began after the last of them. Jobs that have
-- a row among the finished ones are over, even where their lane has lost its cursor.
-- Void entries of unique jobs stay behind.
WITH here AS MATERIALIZED (
    -- An id less a row's age is the id of the transaction that wrote it.
    SELECT pg_current_xact_id()::text::int8 + age(pg_current_xact_id()::xid) AS next
), restored AS MATERIALIZED (
    SELECT max(here.next - written.age) AS last
    FROM here CROSS JOIN LATERAL (
        SELECT min(age(origin.xmin)) AS age FROM rota.origin
        UNION ALL
        SELECT min(age(place.xmin)) FROM rota.cursor AS place WHERE place.xid > '0'
        UNION ALL
        SELECT age(job.xmin) FROM rota.log AS job GROUP BY job.xmin
        HAVING min(job.xid::text::int8) <> max(job.xid::text::int8)
            OR max(job.xid::text::int8) > here.next - age(job.xmin)
    ) AS written
), back AS MATERIALIZED (
    SELECT DISTINCT ON (job.id) job.*
    FROM here CROSS JOIN restored CROSS JOIN rota.log AS job
    CROSS JOIN LATERAL (
        SELECT * FROM rota.lane_place WHERE lane_place.lane = job.lane LIMIT 1
    ) AS place
    WHERE job.id = ANY (%(leased)s::int8[])
       OR (((job.xid::text::int8 > restored.last AND here.next - age(job.xmin) > restored.last)
            OR (((job.xid, job.id) > (place.xid, place.id)
                 OR job.id > place.hole_ids[array_position(place.hole_xids, job.xid)])
                AND (place.xid > '0'
                     OR NOT EXISTS (SELECT FROM rota.finished WHERE finished.id = job.id))))
           AND (job.unique_key IS NULL OR coalesce((
               SELECT true FROM rota.unique_key AS held
               WHERE held.key = job.unique_key AND held.task = job.task AND held.job = job.id
                 AND held.entry = job.entry), false)))
    ORDER BY job.id, job.entry DESC
), key AS (
    UPDATE rota.unique_key AS held SET entry = back.entry + 1, state = 'available' FROM back
    WHERE held.key = back.unique_key AND held.task = back.task AND held.job = back.id
), gone AS (
    DELETE FROM rota.log
)
INSERT INTO rota.log (id, enqueued_at, lane, entry, timeout, segment, attempt, max_attempts, task,
                      args, errors, unique_key, iteration, last_run, headers)
SELECT id, enqueued_at, lane, entry + 1, timeout, (SELECT last_value %% 4 FROM rota.log_turn),
       attempt, max_attempts, task, args, errors,
       CASE WHEN unique_key IS NOT NULL THEN (
           SELECT held.key FROM rota.unique_key AS held
           WHERE held.key = back.unique_key AND held.task = back.task AND held.job = back.id) END,
       iteration, last_run, headers
FROM back ORDER BY id
