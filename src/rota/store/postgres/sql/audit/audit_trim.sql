-- Remove rows that are older than the newest `kept`; `newest` is the id of the newest one. What
-- another transaction removes, or uses, is left to the next. Walks: audit's primary key, from its
-- left end.
DELETE FROM rota.audit WHERE id IN (
    SELECT id FROM rota.audit WHERE id <= %(newest)s::int8 - %(kept)s::int8
    ORDER BY id LIMIT 100 FOR UPDATE SKIP LOCKED)
