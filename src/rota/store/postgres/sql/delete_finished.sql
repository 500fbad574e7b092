-- Remove finished jobs.
DELETE FROM rota.finished WHERE id = ANY (%(jobs)s::int8[]) RETURNING id
