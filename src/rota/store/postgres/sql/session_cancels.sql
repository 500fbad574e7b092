-- Which jobs in a session's leases somebody wants cancelled. Nearly always the table is empty.
SELECT request.job
FROM rota.cancel_request AS request
WHERE EXISTS (
    SELECT FROM rota.lease
    WHERE lease.session = %(session)s::int8 AND request.job = ANY (lease.jobs))
