-- Keep what was done since attempt_begin.sql, and forget the savepoint.
RELEASE SAVEPOINT rota_attempt;
