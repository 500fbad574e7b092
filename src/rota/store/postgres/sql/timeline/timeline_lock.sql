-- One worker at a time goes on to a new timeline; until the end of the transaction.
SELECT pg_advisory_xact_lock(7682005, 0)
