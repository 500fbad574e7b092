-- One housekeeper at a time, the first that comes; freed at the end of the transaction.
SELECT pg_try_advisory_xact_lock(7682002, 1)
