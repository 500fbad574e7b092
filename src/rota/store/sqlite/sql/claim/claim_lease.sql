-- A lease id that was never used before. Locks the database until the claim commits.
UPDATE rota_lease SET last = last + 1 RETURNING last;
