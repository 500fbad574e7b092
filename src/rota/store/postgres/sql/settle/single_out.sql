-- Give one job of a lease a lease of its own, for a transaction of its handler: what that locks
-- then concerns no other job, however long it lasts. Nothing changes where the job is alone
-- already.
-- Gives the lease that the job has now; no row where the session does not hold it any more.
-- Locks the session's row FOR KEY SHARE, as a claim does, so that no rescue is under way; and the
-- lease's, as a settlement does. Walks lease_order.
WITH session AS MATERIALIZED (
    SELECT id FROM rota.session WHERE id = %(session)s::int8 FOR KEY SHARE
), held AS MATERIALIZED (
    SELECT lease.id, lease.session, lease.claimed_at, lease.lane, lease.jobs,
           lease.limits
    FROM session, rota.lease
    WHERE lease.id = %(lease)s::int8 AND lease.session = session.id
      AND %(job)s::int8 = ANY (lease.jobs)
    FOR UPDATE OF lease
), shrunk AS (
    UPDATE rota.lease
    SET jobs = array_remove(held.jobs, %(job)s::int8),
        limits = CASE WHEN held.limits IS NOT NULL THEN ARRAY(
            SELECT one.limit_id FROM unnest(held.jobs, held.limits) AS one (job, limit_id)
            WHERE one.job <> %(job)s::int8) END
    FROM held
    WHERE lease.id = held.id AND cardinality(held.jobs) > 1
), alone AS (
    INSERT INTO rota.lease (slot, session, claimed_at, lane, jobs, limits)
    SELECT (SELECT last_value %% 2 FROM rota.lease_turn), session, claimed_at, lane,
           ARRAY[%(job)s::int8],
           CASE WHEN limits IS NOT NULL
                THEN ARRAY[limits[array_position(jobs, %(job)s::int8)]] END
    FROM held WHERE cardinality(held.jobs) > 1
    RETURNING id
)
SELECT coalesce((SELECT id FROM alone), held.id) FROM held
