-- Add to what was changed. Locks the row, which audit_move.sql has locked already. Walks: audit's
-- primary key.
UPDATE rota.audit SET changed = changed + %(changed)s::int8 WHERE id = %(id)s::int8
