-- Fence a claim: as long as its transaction lasts nobody can declare the session dead, and a
-- session that was declared dead gives no row. KEY SHARE conflicts only with FOR UPDATE.
SELECT id FROM rota.session WHERE id = %(session)s::int8 FOR KEY SHARE
