-- Append the result of a step, if the session still holds the job under this lease; no row: it does
-- not.
-- Locks: the lease's row FOR KEY SHARE until the commit, so that no settlement and no rescue comes
-- between. Walks lease_order.
WITH held AS MATERIALIZED (
    SELECT FROM rota.lease
    WHERE id = %(lease)s::int8 AND session = %(session)s::int8 AND %(job)s::int8 = ANY (jobs)
    FOR KEY SHARE
)
INSERT INTO rota.memory (slot, job, kind, name, value)
SELECT (SELECT last_value %% 2 FROM rota.memory_turn), %(job)s::int8, 'step', %(name)s::text,
       %(value)s::text::json
FROM held
RETURNING id
