-- The first half of a claim of key lanes: wait for the turn, so that the next statement's snapshot
-- is taken after every other such claim has ended. That makes limits exact: the count of what runs
-- includes all that was handed out. There is one turn for the whole database, since a limit may
-- reach over queues.
-- Locks the session's row FOR KEY SHARE, and tells the second half by a setting, as claim_lock.sql
-- does. Locks no lane: see keyed_turn.sql.
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
    SELECT lane.*, pg_advisory_xact_lock(7682004, 0) FROM lane
)
SELECT queue, priority, set_config('rota.locked_keys', id::text, true) FROM turn
