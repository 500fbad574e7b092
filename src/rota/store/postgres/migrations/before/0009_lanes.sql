-- Lanes: who made one, and what claims tell of limits.

-- The transaction that made a lane. A producer must not go on with a lane that its own transaction has
-- made (rota.enqueue() does): that may be rolled back.
ALTER TABLE rota.lane ADD COLUMN made_by xid8 NOT NULL DEFAULT pg_current_xact_id();

-- As it was, with the limit's key, and a rate's starts are found by their index.
CREATE OR REPLACE VIEW rota.lane_open AS
SELECT lane.queue, lane.priority, lane.id AS lane, lane.limit_id, free.places,
       limit_key.rate_count IS NOT NULL AS rated, place.seq, place.xid, place.id, place.taken,
       place.hole_xids, place.hole_ids, limit_key.key AS limit_key
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
CROSS JOIN LATERAL (
    SELECT place.* FROM rota.cursor AS place
    WHERE place.lane = lane.id AND coalesce(free.places > 0, true)
    ORDER BY place.lane DESC, place.seq DESC LIMIT 1
) AS place
WHERE lane.of_key;
