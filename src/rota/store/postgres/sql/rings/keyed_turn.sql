-- Stop the claims of key lanes until the end of the transaction. Always before locks on lanes, so
-- that there is no deadlock.
SELECT pg_advisory_xact_lock(7682004, 0)
