-- Lock these lanes against claims, in the order of their ids: off the normal path, and for the moment of a
-- short transaction of Rota's own.
SELECT id FROM rota.lane WHERE id = ANY (%(lanes)s::int4[]) ORDER BY id FOR NO KEY UPDATE
