-- keyed_lock.sql for all parts of a claim but the first: does not wait.
WITH session AS MATERIALIZED (
    SELECT id FROM rota.session
    WHERE id = %(session)s::int8 AND timeline = (SELECT timeline FROM rota.here)
    FOR KEY SHARE
), lane AS MATERIALIZED (
    SELECT lane.id, lane.queue, lane.priority
    FROM session, rota.lane
    JOIN rota.queue ON queue.name = lane.queue
    WHERE lane.id = %(lane)s::int4 AND NOT queue.paused
), turn AS MATERIALIZED (
    SELECT lane.*, pg_try_advisory_xact_lock(7682004, 0) AS mine FROM lane
)
SELECT queue, priority, set_config('rota.locked_keys', id::text, true) FROM turn WHERE mine
