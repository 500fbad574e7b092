-- Which database this is, and which transaction. Locks nothing.
SELECT (SELECT system_identifier FROM pg_control_system()) || '/' || current_database(),
       pg_current_xact_id()::text
