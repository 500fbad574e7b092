-- A key costs nothing while none of its jobs is in the log: lanes without rows there are not walked, and have
-- no cursor entry. Workers of a version before this one take a lane without a cursor entry for empty, and
-- may truncate what waits in it: they must not run beside newer ones.

-- Whether there are so few lanes that looking at each of them is cheaper than asking the log which are
-- in use. Lanes are numbered with few gaps.
CREATE VIEW rota.lane_few AS SELECT last_value <= 2000 AS few FROM rota.lane_id_seq;

-- The lanes that may have rows in the log. Walks lane's keys where there are few, else log_order from lane
-- to lane, with one probe for each; once for a statement, however often a subquery asks.
-- The switch is thrown once: a number that another transaction takes shows at once.
CREATE VIEW rota.lane_used AS
WITH RECURSIVE walk AS MATERIALIZED (
    SELECT few FROM rota.lane_few
), used AS (
    (SELECT job.lane FROM rota.log AS job
     WHERE NOT (SELECT few FROM walk)
     ORDER BY job.lane, job.xid, job.id LIMIT 1)
    UNION ALL
    SELECT next.lane FROM used
    CROSS JOIN LATERAL (
        SELECT job.lane FROM rota.log AS job WHERE job.lane > used.lane
        ORDER BY job.lane, job.xid, job.id LIMIT 1
    ) AS next
), known AS MATERIALIZED (
    SELECT lane.id, lane.queue, lane.priority, lane.of_key
    FROM used CROSS JOIN LATERAL (SELECT * FROM rota.lane WHERE id = used.lane LIMIT 1) AS lane
)
SELECT lane.id, lane.queue, lane.priority, lane.of_key
FROM rota.lane WHERE (SELECT few FROM walk)
UNION ALL
SELECT id, queue, priority, of_key FROM known;

-- How far each lane has been handed out. A keyed one without a cursor entry is at its beginning: all its rows
-- that there are, or will be, have not been handed out.
CREATE VIEW rota.lane_place AS
SELECT lane.id AS lane, coalesce(newest.xid, '0') AS xid, coalesce(newest.id, 0) AS id,
       coalesce(newest.hole_xids, '{}') AS hole_xids, coalesce(newest.hole_ids, '{}') AS hole_ids
FROM rota.lane
LEFT JOIN LATERAL (
    SELECT place.* FROM rota.cursor AS place WHERE place.lane = lane.id
    ORDER BY place.lane DESC, place.seq DESC LIMIT 1
) AS newest ON true
-- A plain lane always has one, but for a reader whose snapshot is older than the copy.
WHERE lane.of_key OR newest.lane IS NOT NULL;

-- The newest cursor entry of each lane that has one. Walks cursor_order downwards, with one probe for each.
CREATE VIEW rota.cursor_newest AS
WITH RECURSIVE newest AS (
    (SELECT place.* FROM rota.cursor AS place ORDER BY place.lane DESC, place.seq DESC LIMIT 1)
    UNION ALL
    SELECT below.* FROM newest
    CROSS JOIN LATERAL (
        SELECT place.* FROM rota.cursor AS place WHERE place.lane < newest.lane
        ORDER BY place.lane DESC, place.seq DESC LIMIT 1
    ) AS below
)
SELECT * FROM newest;

-- As it was, but a lane without a cursor entry is at its beginning.
CREATE OR REPLACE VIEW rota.lane_open AS
SELECT lane.queue, lane.priority, lane.id AS lane, lane.limit_id, free.places,
       limit_key.rate_count IS NOT NULL AS rated, coalesce(place.seq, 0) AS seq,
       coalesce(place.xid, '0') AS xid, coalesce(place.id, 0) AS id, coalesce(place.taken, 0) AS taken,
       coalesce(place.hole_xids, '{}') AS hole_xids, coalesce(place.hole_ids, '{}') AS hole_ids,
       limit_key.key AS limit_key
FROM rota.lane
LEFT JOIN rota.limit_key ON limit_key.id = lane.limit_id
CROSS JOIN LATERAL (
    SELECT least(
        limit_key.running - coalesce((
            -- Made once, then looked up: there may be as many limits as there are lanes.
            SELECT jsonb_object_agg(held.limit_id, held.jobs)
            FROM (
                SELECT one.limit_id, count(*) AS jobs
                FROM rota.lease CROSS JOIN LATERAL unnest(lease.limits) AS one (limit_id)
                WHERE lease.limits IS NOT NULL
                GROUP BY one.limit_id
            ) AS held
        ) ->> lane.limit_id::text, '0')::int8,
        limit_key.rate_count - CASE WHEN limit_key.rate_count IS NOT NULL THEN (
            SELECT coalesce(sum(start.jobs), 0) FROM rota.limit_start AS start
            WHERE start.limit_id = lane.limit_id
              -- Asked once, as a value: compared with the function itself no index would be walked.
              AND start.at > (SELECT clock_timestamp())
                             - make_interval(secs => limit_key.rate_seconds::float8)
        ) END) AS places
    OFFSET 0
) AS free
LEFT JOIN LATERAL (
    SELECT place.* FROM rota.cursor AS place
    WHERE place.lane = lane.id AND coalesce(free.places > 0, true)
    ORDER BY place.lane DESC, place.seq DESC LIMIT 1
) AS place ON true
WHERE lane.of_key AND coalesce(free.places > 0, true);

-- Those of them that have something to claim.
CREATE OR REPLACE VIEW rota.lane_ready AS
SELECT used.queue, used.priority, place.lane, place.limit_id, place.places, place.rated, place.seq,
       place.xid, place.id, place.taken, place.hole_xids, place.hole_ids
FROM rota.lane_used AS used
CROSS JOIN LATERAL (SELECT * FROM rota.lane_open WHERE lane_open.lane = used.id LIMIT 1) AS place
WHERE used.of_key AND (coalesce((
        SELECT true FROM rota.log AS job
        WHERE job.lane = place.lane AND (job.xid, job.id) > (place.xid, place.id)
        ORDER BY job.lane, job.xid, job.id LIMIT 1), false)
   OR coalesce((
        SELECT true
        FROM unnest(place.hole_xids, place.hole_ids) AS hole (xid, id)
        CROSS JOIN LATERAL (
            SELECT FROM rota.log AS job
            WHERE job.lane = place.lane AND job.xid = hole.xid AND job.id > hole.id LIMIT 1) AS job
        LIMIT 1), false));

-- As it was, with plain lanes that stand for the keyed ones of their queue and priority, so that a mark
-- does not grow with the keys.
CREATE OR REPLACE VIEW rota.counter AS
WITH mark AS MATERIALIZED (
    SELECT newest.*, pg_snapshot_xmax(newest.snapshot) AS later,
           ARRAY(SELECT pg_snapshot_xip(newest.snapshot)) AS running
    FROM rota.tally_mark AS newest ORDER BY newest.seq DESC LIMIT 1
), change AS (
    SELECT lane.id AS lane, 'appended' AS state, 'infinity'::timestamptz AS expires, came.jobs,
           came.jobs AS recent
    FROM mark CROSS JOIN rota.lane_used AS lane
    CROSS JOIN LATERAL (
        SELECT count(*) AS jobs FROM (
            SELECT FROM rota.log AS job WHERE job.lane = lane.id AND job.xid >= mark.later
            UNION ALL
            SELECT FROM unnest(mark.running) AS late (xid)
            CROSS JOIN LATERAL (
                SELECT FROM rota.log AS job WHERE job.lane = lane.id AND job.xid = late.xid
                ORDER BY job.lane, job.xid, job.id
            ) AS job
        ) AS job
    ) AS came
    WHERE came.jobs > 0
    UNION ALL
    SELECT tally.lane, tally.state, tally.expires,
           CASE WHEN pg_visible_in_snapshot(tally.appended_by, mark.snapshot)
                THEN 0 ELSE tally.jobs END, 1
    FROM mark
    CROSS JOIN LATERAL (
        SELECT tally.* FROM rota.tally WHERE tally.xid >= mark.later
        UNION ALL
        SELECT tally.* FROM rota.tally WHERE tally.xid = ANY (mark.running)
    ) AS tally
)
SELECT plain.id AS lane, part.state, part.expires, sum(part.jobs)::bigint AS jobs,
       sum(part.recent)::bigint AS recent
FROM (
    SELECT total.lane, total.state, total.expires, total.jobs, 0 AS recent
    FROM mark
    CROSS JOIN LATERAL unnest(mark.lanes, mark.states, mark.expires, mark.jobs)
        AS total (lane, state, expires, jobs)
    UNION ALL
    SELECT * FROM change
) AS part
CROSS JOIN LATERAL (
    SELECT plain.id FROM rota.lane
    JOIN rota.lane AS plain
      ON plain.queue = lane.queue AND plain.priority = lane.priority AND NOT plain.of_key
    WHERE lane.id = part.lane LIMIT 1
) AS plain
GROUP BY plain.id, part.state, part.expires;

-- As it was, but a lane without a cursor entry is at its beginning.
CREATE OR REPLACE VIEW rota.job AS
SELECT timer.id, timer.task, timer.args, lane.queue, lane.priority, timer.state,
       timer.attempt, timer.max_attempts, timer.timeout, timer.enqueued_at,
       CASE WHEN timer.state <> 'available' THEN timer.run_at END AS scheduled_at,
       NULL::timestamptz AS finished_at, NULL::json AS result, timer.errors, NULL::text AS worker,
       timer.unique_key, timer.iteration, timer.last_run
FROM rota.timer
JOIN rota.lane ON lane.id = timer.lane
WHERE timer.unique_key IS NULL OR coalesce((
    SELECT true FROM rota.unique_key AS held
    WHERE held.key = timer.unique_key AND held.task = timer.task AND held.job = timer.id
      AND held.entry = timer.entry), false)
UNION ALL
SELECT job.id, job.task, job.args, lane.queue, lane.priority, 'available',
       job.attempt, job.max_attempts, job.timeout, job.enqueued_at,
       NULL, NULL, NULL, job.errors, NULL, job.unique_key, job.iteration, job.last_run
FROM rota.log AS job
JOIN rota.lane ON lane.id = job.lane
CROSS JOIN LATERAL (
    SELECT * FROM rota.lane_place WHERE lane_place.lane = job.lane LIMIT 1
) AS place
WHERE ((job.xid, job.id) > (place.xid, place.id)
    OR job.id > place.hole_ids[array_position(place.hole_xids, job.xid)])
  AND (job.unique_key IS NULL OR coalesce((
    SELECT true FROM rota.unique_key AS held
    WHERE held.key = job.unique_key AND held.task = job.task AND held.job = job.id
      AND held.entry = job.entry), false))
UNION ALL
SELECT held.id, job.task, job.args, lane.queue, lane.priority, 'running',
       (job.attempt + 1)::smallint, job.max_attempts, job.timeout, job.enqueued_at,
       NULL, NULL, NULL, job.errors, session.host || ':' || session.pid,
       job.unique_key, job.iteration, job.last_run
FROM rota.lease
CROSS JOIN LATERAL unnest(lease.jobs) AS held (id)
CROSS JOIN LATERAL (
    SELECT entry.* FROM rota.log AS entry WHERE entry.id = held.id
    ORDER BY entry.id DESC, entry.entry DESC LIMIT 1
) AS job
JOIN rota.lane ON lane.id = job.lane
JOIN rota.session ON session.id = lease.session
UNION ALL
SELECT id, task, args, queue, priority, state, attempt, max_attempts, timeout, enqueued_at,
       NULL, finished_at, result, errors, NULL, unique_key, iteration, last_run
FROM rota.finished
WHERE keep_until > now();

-- Whether a job that was cancelled before it started had its unique key only while it waited: so has it when
-- somebody retries it. Null for all others.
ALTER TABLE rota.finished ADD COLUMN while_waiting boolean;
