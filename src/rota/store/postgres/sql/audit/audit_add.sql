-- Write down what someone did; gives the id of the row. Locks nothing that others wait for.
INSERT INTO rota.audit (who, action, what, changed, job)
VALUES (%(who)s, %(action)s, %(what)s::json, %(changed)s::int8, %(job)s::int8)
RETURNING id
