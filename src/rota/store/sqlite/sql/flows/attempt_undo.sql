-- Take back what was done since attempt_begin.sql.
ROLLBACK TO SAVEPOINT rota_attempt;
