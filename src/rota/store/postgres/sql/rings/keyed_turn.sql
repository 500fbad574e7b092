-- Stop the claims of keyed lanes until the end of the transaction. Whoever locks lanes, too, does so
-- afterwards: then nobody deadlocks.
SELECT pg_advisory_xact_lock(7682004, 0)
