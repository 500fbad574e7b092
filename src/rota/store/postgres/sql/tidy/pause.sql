-- Let transactions that use a table for a moment come and go.
SELECT pg_sleep(0.05)
