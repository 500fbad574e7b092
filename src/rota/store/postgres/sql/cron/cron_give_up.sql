-- Undo what has been done since the last cron_attempt.sql. Gives back the locks that were taken
-- since.
ROLLBACK TO SAVEPOINT cron_entry
