-- Begin with the unique jobs of an entry: what follows can be undone without the other entries.
-- Locks nothing.
SAVEPOINT cron_entry
