-- Fence an ending session against its own claims; see claim_lock.sql.
SELECT id FROM rota.session WHERE id = ANY (%(sessions)s::int8[]) ORDER BY id FOR UPDATE
