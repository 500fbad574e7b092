-- Take what an ending session still holds. Its row is locked first, so no claim of it is under way.
-- Leases are locked by their ids' order, as settlements lock them.
WITH held AS MATERIALIZED (
    SELECT id FROM rota.lease WHERE session = %(session)s::int8 ORDER BY id FOR UPDATE
)
DELETE FROM rota.lease USING held WHERE lease.id = held.id
RETURNING lease.jobs
