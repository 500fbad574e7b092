-- Take what an ending session still holds. Its row is locked first, so no claim of it is under way.
DELETE FROM rota.lease WHERE session = %(session)s::int8 RETURNING jobs
