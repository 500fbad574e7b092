-- Take back what was done since attempt_begin.sql, with its locks.
ROLLBACK TO SAVEPOINT rota_attempt
