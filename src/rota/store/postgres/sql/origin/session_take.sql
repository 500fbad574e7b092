-- Take the leases that a session still has, but those in `held`. The session is not claiming: its
-- row is locked, or the session itself asks.
-- Leases are locked by their ids' order, as settlements lock them.
WITH held AS MATERIALIZED (
    SELECT id FROM rota.lease WHERE session = %(session)s::int8 AND id <> ALL (%(held)s::int8[])
    ORDER BY id FOR UPDATE
)
DELETE FROM rota.lease USING held WHERE lease.id = held.id
RETURNING lease.jobs
