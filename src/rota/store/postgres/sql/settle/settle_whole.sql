-- Settle a lease whole: deleted if the session still holds it with exactly these jobs (in the order
-- of their ids, as the claim stored them), the common case. No row, also where any job has a
-- request to cancel: settle_fence.sql then decides job by job. Gives the lease's id, and whether
-- any process waits for the end of jobs, see waited.sql.
DELETE FROM rota.lease
WHERE id = %(lease)s::int8 AND session = %(session)s::int8 AND jobs = %(jobs)s::text::int8[]
  AND NOT EXISTS (SELECT FROM rota.cancel_request)
RETURNING id, lane, CASE WHEN pg_try_advisory_lock(7682007, 0)
                         THEN pg_advisory_unlock(7682007, 0) IS NULL ELSE true END
