-- Let those who use a table for a moment come and go.
SELECT pg_sleep(0.05)
