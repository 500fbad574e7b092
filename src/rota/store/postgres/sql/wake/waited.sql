-- Whether any process waits for the end of a job: such a process holds this lock, shared, see
-- wait_begin.sql. Trying the lock costs microseconds. Two sessions that try at once may both read
-- true.
SELECT CASE WHEN pg_try_advisory_lock(7682007, 0)
            THEN pg_advisory_unlock(7682007, 0) IS NULL ELSE true END
