-- Limits and fair shares: jobs with a key lie in a lane of that key.

-- What limits the jobs of a key: so many at once, so many starts in so many seconds. The numbers come
-- from the code that enqueues, and change when they change there. 0 is no limit's id.
CREATE TABLE rota.limit_key (
    id           integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key          text NOT NULL UNIQUE,
    running      integer,
    rate_count   integer,
    rate_seconds real
);

-- A keyed lane has a log order and a cursor of its own, as every lane has. No claim locks its row:
-- claims of keyed lanes take turns. For each of them there is the plain lane of its queue and priority.
ALTER TABLE rota.lane
    ADD COLUMN limit_id integer NOT NULL DEFAULT 0,
    ADD COLUMN fair text NOT NULL DEFAULT '',
    ADD COLUMN of_key boolean GENERATED ALWAYS AS (limit_id <> 0 OR fair <> '') STORED,
    DROP CONSTRAINT lane_queue_priority_key;
CREATE UNIQUE INDEX lane_key ON rota.lane (queue, priority, limit_id, fair);
CREATE UNIQUE INDEX lane_plain ON rota.lane (queue, priority) WHERE NOT of_key;
CREATE INDEX lane_keyed ON rota.lane (queue, priority, id) WHERE of_key;

-- The limit of each of a lease's jobs, 0 for none; null where none of them has one. A place is free
-- again when its job leaves its lease, however it does.
ALTER TABLE rota.lease ADD COLUMN limits integer[];

-- Where a finished job lay, if that was a keyed lane: a retry by hand puts it there again.
ALTER TABLE rota.finished ADD COLUMN lane integer;

-- How many jobs of a limit with a rate started when. Append-only, in two tables that turn: what lies
-- in a limit's window is copied, the rest goes by TRUNCATE.
CREATE SEQUENCE rota.limit_turn MINVALUE 0 START 0;
CREATE TABLE rota.limit_start (
    at       timestamptz NOT NULL,
    limit_id integer NOT NULL,
    jobs     integer NOT NULL,
    slot     smallint NOT NULL
) PARTITION BY LIST (slot);
CREATE TABLE rota.limit_start_0 PARTITION OF rota.limit_start FOR VALUES IN (0)
    WITH (autovacuum_enabled = false);
CREATE TABLE rota.limit_start_1 PARTITION OF rota.limit_start FOR VALUES IN (1)
    WITH (autovacuum_enabled = false);
CREATE INDEX limit_start_order ON rota.limit_start (limit_id, at);

-- The keyed lanes whose limits have a place, with their cursors and with how many places there are
-- (null: no limit). Exact for who has the turn, see keyed_lock.sql; for others it was so a moment ago.
-- Walks lane_keyed and stops where its reader does; where there is no place it reads nothing more.
CREATE VIEW rota.lane_open AS
SELECT lane.queue, lane.priority, lane.id AS lane, lane.limit_id, free.places,
       limit_key.rate_count IS NOT NULL AS rated, place.seq, place.xid, place.id, place.taken,
       place.hole_xids, place.hole_ids
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
              AND start.at > clock_timestamp() - make_interval(secs => limit_key.rate_seconds::float8)
        ) END) AS places
    OFFSET 0
) AS free
CROSS JOIN LATERAL (
    SELECT place.* FROM rota.cursor AS place
    WHERE place.lane = lane.id AND coalesce(free.places > 0, true)
    ORDER BY place.lane DESC, place.seq DESC LIMIT 1
) AS place
WHERE lane.of_key;

-- Those of them that have something to claim.
CREATE VIEW rota.lane_ready AS
SELECT place.* FROM rota.lane_open AS place
WHERE coalesce((
        SELECT true FROM rota.log AS job
        WHERE job.lane = place.lane AND (job.xid, job.id) > (place.xid, place.id)
        ORDER BY job.lane, job.xid, job.id LIMIT 1), false)
   OR coalesce((
        SELECT true
        FROM unnest(place.hole_xids, place.hole_ids) AS hole (xid, id)
        CROSS JOIN LATERAL (
            SELECT FROM rota.log AS job
            WHERE job.lane = place.lane AND job.xid = hole.xid AND job.id > hole.id LIMIT 1) AS job
        LIMIT 1), false);
