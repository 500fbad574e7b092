-- What people did, the newest first, from the one below `before` on. Locks nothing.
-- Walks: rota_audit by its primary key, backwards.
SELECT id, at, who, action, what, changed, job FROM rota_audit
WHERE id < :before ORDER BY id DESC LIMIT :size;
