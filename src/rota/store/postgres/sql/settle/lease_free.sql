-- Whether a session still holds a lease, and whether another transaction has locked it; else it is
-- locked now. No row: the lease is gone. Waits for no lock. Walks lease_order.
WITH free AS MATERIALIZED (
    SELECT id FROM rota.lease
    WHERE id = %(lease)s::int8 AND session = %(session)s::int8 FOR UPDATE SKIP LOCKED
)
SELECT NOT EXISTS (SELECT FROM free) FROM rota.lease
WHERE id = %(lease)s::int8 AND session = %(session)s::int8
