-- Wait as long as lock_wait.sql lets a truncation wait.
SELECT pg_sleep(0.05)
