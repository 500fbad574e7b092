-- Forget what was told of these jobs. By hand, hence rare.
WITH living AS (
    DELETE FROM rota.note WHERE job = ANY (%(jobs)s::int8[])
)
DELETE FROM rota.finished_note WHERE job = ANY (%(jobs)s::int8[])
