-- Begin with the unique jobs of an entry: what follows can be undone, and the other entries stay
-- done.
-- Locks nothing.
SAVEPOINT cron_entry
