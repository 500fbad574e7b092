-- End a wait, if the session still holds the job under this lease (no row: it does not): with the
-- oldest signal of that name that was not taken; if there is none and the time is `over`, with
-- none. Gives whether it has ended, and the signal's name for itself and what it brought.
-- Locks: the lease's row, as in remember.sql. Walks lease_order, memory_order and memory_ref.
WITH held AS MATERIALIZED (
    SELECT FROM rota.lease
    WHERE id = %(lease)s::int8 AND session = %(session)s::int8 AND %(job)s::int8 = ANY (jobs)
    FOR KEY SHARE
), came AS MATERIALIZED (
    SELECT ref, value FROM rota.mail
    WHERE job = %(job)s::int8 AND name = %(signal)s::text
    ORDER BY id LIMIT 1
), ended AS (
    INSERT INTO rota.memory (slot, job, kind, name, ref, value)
    SELECT (SELECT last_value %% 2 FROM rota.memory_turn), %(job)s::int8, 'answer', %(name)s::text,
           came.ref, came.value
    FROM held LEFT JOIN came ON true
    WHERE came.ref IS NOT NULL OR %(over)s::boolean
    RETURNING ref, value
)
SELECT EXISTS (SELECT FROM ended), (SELECT ref FROM ended), (SELECT value::text FROM ended) FROM held
