-- Whether anybody waits for the end of any job: those who do hold this lock, shared, see wait_begin.sql.
-- Trying it costs microseconds. Two who try at once may both read true.
SELECT CASE WHEN pg_try_advisory_lock(7682007, 0)
            THEN pg_advisory_unlock(7682007, 0) IS NULL ELSE true END
