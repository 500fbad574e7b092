-- Remove the minutes after this one, which were written before the clock was set back. What was
-- counted in them counts in the next one. Locks: the database. Walks: all of rota_history, rarely.
DELETE FROM rota_history WHERE minute > :label;
