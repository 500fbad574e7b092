-- Whether a job that was cancelled before it started had its unique key only while it waited: so has it when
-- somebody retries it. Null for all others.
ALTER TABLE rota_job ADD COLUMN while_waiting INTEGER;
