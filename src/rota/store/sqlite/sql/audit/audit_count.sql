-- Add to what was changed. Walks: rota_audit by its primary key.
UPDATE rota_audit SET changed = changed + :changed WHERE id = :id;
