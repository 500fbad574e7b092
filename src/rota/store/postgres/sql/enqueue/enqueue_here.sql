-- enqueue.sql for a producer that knows its lane and a segment: straight into that segment. The
-- number of the segment is put in when the statement is read.
INSERT INTO rota.log_0 (id, lane, segment, max_attempts, timeout, task, headers, args)
VALUES (nextval('rota.job_id'), %(lane)s::int4, 0 /* segment */, %(max_attempts)s::int2,
        %(timeout)s::float4, %(task)s, %(headers)s::text::json, %(args)s::text::json)
RETURNING id, CASE WHEN %(wake)s::text IS NULL THEN false
                   WHEN pg_try_advisory_lock(7682001, hashtext(%(wake)s))
                   THEN pg_advisory_unlock(7682001, hashtext(%(wake)s)) IS NULL
                   ELSE pg_notify('rota', concat('+', pg_current_xact_id(), ' ', %(wake)s)) IS NULL END
