-- The tables say which older code works with them.
-- Expands: older code does not look, and goes on as long as its processes run.

-- The oldest version whose code works with these tables. A migration that takes away what code of this version
-- still uses raises it.
CREATE VIEW rota.oldest_code AS SELECT 17 AS version;
