-- Store a flow. One with a deadline is to be stopped then.
WITH flow AS (
    INSERT INTO rota.flow (name, deadline, keep)
    VALUES (%(name)s, clock_timestamp() + make_interval(secs => %(deadline)s::float8), %(keep)s::float8)
    RETURNING id, deadline
), stop AS (
    INSERT INTO rota.flow_stop (flow, since, next, reason)
    SELECT id, deadline, deadline, %(reason)s::text FROM flow WHERE deadline IS NOT NULL
)
SELECT id FROM flow
