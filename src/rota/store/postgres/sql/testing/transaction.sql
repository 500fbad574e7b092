-- Which transaction this is: outside of one, each statement has another. Locks nothing.
SELECT pg_current_xact_id()::text
