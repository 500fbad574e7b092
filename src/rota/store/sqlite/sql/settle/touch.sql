-- A change of nothing: a driver that begins transactions with the first change begins one now.
-- Python's does so for an UPDATE, and not for a WITH that leads to one.
-- Locks: the database. Walks: nothing.
UPDATE rota_job SET lease = lease WHERE 0;
