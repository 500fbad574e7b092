-- The lease under which a session holds a job, whichever that is. Locks nothing, so it is an answer
-- of this moment. Walks the leases, which are few; asked only where a process was lost sight of.
SELECT id FROM rota.lease
WHERE session = %(session)s::int8 AND %(job)s::int8 = ANY (jobs)
