-- claim_lock.sql for every further lane of the same claim: does not wait.
WITH session AS MATERIALIZED (
    SELECT id FROM rota.session
    WHERE id = %(session)s::int8 AND timeline = (SELECT timeline FROM rota.here)
    FOR KEY SHARE
), locked AS MATERIALIZED (
    SELECT lane.id, lane.queue, lane.priority, lane.keyed
    FROM session, rota.lane
    JOIN rota.queue ON queue.name = lane.queue
    WHERE lane.id = %(lane)s::int4 AND NOT queue.paused
    FOR NO KEY UPDATE OF lane SKIP LOCKED
)
SELECT queue, priority, keyed,
       set_config('rota.locked_lane', CASE WHEN keyed THEN id || ' keyed' ELSE id::text END, true)
FROM locked
