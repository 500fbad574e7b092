-- Jobs of tasks that some workers do not know have lanes of their own.
-- Expands: older code writes null, does not say which tasks it knows, and claims from all lanes.

-- Which tasks a worker knows, a JSON array; null: it does not say, since it has an older Rota.
ALTER TABLE rota_session ADD COLUMN tasks TEXT;

-- A lane of jobs of one task, which a worker that does not know the task has passed on.
ALTER TABLE rota_lane ADD COLUMN task TEXT;
