-- Keep what was done since attempt_begin.sql.
RELEASE SAVEPOINT rota_attempt
