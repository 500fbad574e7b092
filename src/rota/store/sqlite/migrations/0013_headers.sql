-- Headers: names and texts that travel with a job.
-- Expands: older code writes none, and leaves those of others alone.

-- A JSON object.
ALTER TABLE rota_job ADD COLUMN headers TEXT;
