-- Lock the lanes in which these jobs lie, in the order of their ids, against claims: off the
-- normal path, and for the moment of a short transaction of Rota's own.
SELECT id FROM rota.lane
WHERE id IN (SELECT lane FROM rota.log WHERE id = ANY (%(jobs)s::int8[]))
ORDER BY id FOR NO KEY UPDATE
