-- Say that this connection waits for the end of jobs; settle_whole.sql and others look for the
-- lock.
SELECT pg_advisory_lock_shared(7682007, 0)
