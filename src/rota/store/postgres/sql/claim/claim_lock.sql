-- The first half of a claim: lock the lane, so that the next statement's snapshot is taken after
-- every other claim of this lane has ended. A statement that waits for a lock keeps its old
-- snapshot, hence two statements. FOR NO KEY UPDATE makes no row version. Holds no lock on any
-- segment while it waits, and no other lane, so claims cannot deadlock. The second half is sent
-- without waiting for the answer; the setting, which ends with the transaction, tells it whether
-- the lane is locked. (Beside the lock the setting would be made for rows, too, that the lock
-- skips.)
-- Locks the session's row, too, FOR KEY SHARE: as long as the claim's transaction lasts the session
-- cannot be declared dead. No row: the queue is paused, or the session is dead already, or was
-- opened before a failover.
WITH session AS MATERIALIZED (
    SELECT id FROM rota.session
    WHERE id = %(session)s::int8 AND timeline = (SELECT timeline FROM rota.here)
    FOR KEY SHARE
), locked AS MATERIALIZED (
    SELECT lane.id, lane.queue, lane.priority, lane.keyed
    FROM session, rota.lane
    JOIN rota.queue ON queue.name = lane.queue
    WHERE lane.id = %(lane)s::int4 AND NOT queue.paused
    FOR NO KEY UPDATE OF lane
)
SELECT queue, priority, keyed,
       set_config('rota.locked_lane', CASE WHEN keyed THEN id || ' keyed' ELSE id::text END, true)
FROM locked
