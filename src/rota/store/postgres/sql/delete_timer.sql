-- Remove jobs that wait for their time.
DELETE FROM rota.timer WHERE id = ANY (%(jobs)s::int8[]) RETURNING id
