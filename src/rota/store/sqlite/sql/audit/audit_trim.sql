-- Remove rows that are older than the newest `kept`; `newest` is the id of the newest one.
-- Walks: rota_audit by its primary key, from its left end.
DELETE FROM rota_audit WHERE id <= :newest - :kept;
