-- Append every job that is available or was leased once more, under this cluster's numbers, and
-- remove all other entries: one statement, hence one snapshot, so that what a producer commits
-- meanwhile is neither taken nor removed. All lanes are locked.
-- A transaction id that is still to come proves that rows were restored. Jobs that were enqueued
-- here since then stand before their lane's cursor; they are told by xmin, which no dump carries:
-- theirs is younger than that of the restored row in `origin`. Void entries of unique jobs stay behind.
WITH restored AS MATERIALIZED (
    SELECT EXISTS (SELECT FROM rota.log WHERE xid >= pg_snapshot_xmax(pg_current_snapshot()))
        OR EXISTS (SELECT FROM rota.cursor WHERE xid >= pg_snapshot_xmax(pg_current_snapshot()))
        OR EXISTS (SELECT FROM rota.timer WHERE xid >= pg_snapshot_xmax(pg_current_snapshot()))
        OR EXISTS (SELECT FROM rota.timer_mark
                   WHERE pg_snapshot_xmax(snapshot) > pg_snapshot_xmax(pg_current_snapshot()))
        AS sure
), back AS MATERIALIZED (
    SELECT DISTINCT ON (job.id) job.*
    FROM restored CROSS JOIN rota.origin CROSS JOIN rota.log AS job
    CROSS JOIN LATERAL (
        SELECT * FROM rota.lane_place WHERE lane_place.lane = job.lane LIMIT 1
    ) AS place
    WHERE job.id = ANY (%(leased)s::int8[])
       OR (((job.xid, job.id) > (place.xid, place.id)
            OR job.id > place.hole_ids[array_position(place.hole_xids, job.xid)]
            OR (restored.sure AND age(job.xmin) < age(origin.xmin)))
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
                      args, errors, unique_key, iteration, last_run)
SELECT id, enqueued_at, lane, entry + 1, timeout, (SELECT last_value %% 4 FROM rota.log_turn),
       attempt, max_attempts, task, args, errors,
       CASE WHEN unique_key IS NOT NULL THEN (
           SELECT held.key FROM rota.unique_key AS held
           WHERE held.key = back.unique_key AND held.task = back.task AND held.job = back.id) END,
       iteration, last_run
FROM back ORDER BY id
