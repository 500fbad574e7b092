-- Jobs of tasks that some workers do not know have lanes of their own.
-- Expands: older code writes null, does not say which tasks it knows, and claims from all lanes.
-- Walks rota.lane: the index needs it once; a lane that is new waits for that, and nothing else.

-- Which tasks a worker knows; null: it does not say, since it has an older Rota.
ALTER TABLE rota.session ADD COLUMN tasks text[];

-- A lane of jobs of one task, which a worker that does not know the task has passed on. Workers of an older Rota claim
-- from it as from that of any other key.
ALTER TABLE rota.lane ADD COLUMN task text;
CREATE INDEX lane_task ON rota.lane (id) WHERE task IS NOT NULL;
