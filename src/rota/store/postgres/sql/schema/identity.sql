-- Which database this is: the cluster, and its name there. Locks nothing, and reads no table of
-- Rota's.
SELECT (SELECT system_identifier FROM pg_control_system()) || '/' || current_database()
