-- Forget what these jobs remember. By hand, hence rare.
WITH living AS (
    DELETE FROM rota.memory WHERE job = ANY (%(jobs)s::int8[])
)
DELETE FROM rota.finished_memory WHERE job = ANY (%(jobs)s::int8[])
