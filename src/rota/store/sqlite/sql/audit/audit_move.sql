-- Go on to the next position, if nobody else has; gives the id. Walks: rota_audit by its primary
-- key.
UPDATE rota_audit SET position = :further WHERE id = :id AND position IS :before RETURNING id;
