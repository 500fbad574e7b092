-- Append a signal, unless it is there. `told` is what tells it from others of its name; null: its
-- own number does.
-- Locks: the database. Walks: rota_memory_order.
INSERT INTO rota_memory (job, at, kind, name, ref, value)
SELECT :job, (julianday('now') - 2440587.5) * 86400.0, 'signal', :name,
       coalesce(:name || '=' || :told,
                :name || '#' || coalesce((SELECT seq + 1 FROM sqlite_sequence WHERE name = 'rota_memory'), 1)),
       :value
WHERE :told IS NULL OR NOT EXISTS (
    SELECT 1 FROM rota_memory WHERE job = :job AND kind = 'signal' AND ref = :name || '=' || :told);
