-- Take settled jobs out of their leases, where the session still holds these leases; the locks on
-- the lease rows, in the order of their ids, decide between a settlement and a rescue that meet.
-- A lease that is settled whole is deleted, another one shrinks, and its jobs' limits with it.
-- Gives, for each lease still held: its id, its lane, settled jobs that it did not hold, settled
-- jobs with a request to cancel, and whether any process waits for the end of jobs, see waited.sql.
WITH settled AS MATERIALIZED (
    SELECT lease, array_agg(job) AS jobs
    FROM unnest(%(leases)s::int8[], %(jobs)s::int8[]) AS settled (lease, job)
    GROUP BY lease
), held AS MATERIALIZED (
    SELECT lease.id, lease.lane, lease.jobs, lease.limits FROM rota.lease
    WHERE lease.id = ANY (%(distinct)s::int8[]) AND lease.session = %(session)s::int8
    ORDER BY lease.id FOR UPDATE
), rest AS MATERIALIZED (
    SELECT held.id, held.lane, held.jobs, settled.jobs AS settled,
           ARRAY(SELECT one.job FROM unnest(held.jobs) AS one (job)
                 WHERE one.job NOT IN (SELECT unnest(settled.jobs))) AS remaining,
           CASE WHEN held.limits IS NOT NULL THEN
               ARRAY(SELECT one.limit_id FROM unnest(held.jobs, held.limits) AS one (job, limit_id)
                     WHERE one.job NOT IN (SELECT unnest(settled.jobs))) END AS limits
    FROM held JOIN settled ON settled.lease = held.id
), closed AS (
    DELETE FROM rota.lease USING rest WHERE lease.id = rest.id AND rest.remaining = '{}'
), shrunk AS (
    UPDATE rota.lease SET jobs = rest.remaining, limits = rest.limits FROM rest
    WHERE lease.id = rest.id AND rest.remaining <> '{}'
)
SELECT rest.id, rest.lane, ARRAY(SELECT unnest(rest.settled) EXCEPT SELECT unnest(rest.jobs)),
       ARRAY(SELECT job FROM rota.cancel_request WHERE job = ANY (rest.settled)),
       CASE WHEN pg_try_advisory_lock(7682007, 0)
            THEN pg_advisory_unlock(7682007, 0) IS NULL ELSE true END
FROM rest
