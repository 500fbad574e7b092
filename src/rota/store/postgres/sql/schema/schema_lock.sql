-- One migrator at a time; freed at the end of the transaction.
SELECT pg_advisory_xact_lock(7682003, 0)
