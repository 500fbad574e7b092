-- Take the leases that a session still has, but those in `held` and those that a transaction has
-- locked: a prepared one may last for hours. The session is not claiming: its row is locked, or the
-- session itself asks. Gives the jobs of each lease, and a row without jobs if some leases stay.
-- Locks leases by their ids' order; waits for no lock.
WITH free AS MATERIALIZED (
    SELECT id FROM rota.lease WHERE session = %(session)s::int8 AND id <> ALL (%(held)s::int8[])
    ORDER BY id FOR UPDATE SKIP LOCKED
), taken AS (
    DELETE FROM rota.lease USING free WHERE lease.id = free.id
    RETURNING lease.jobs
)
SELECT jobs FROM taken
UNION ALL
SELECT NULL WHERE EXISTS (
    SELECT FROM rota.lease
    WHERE session = %(session)s::int8 AND id <> ALL (%(held)s::int8[])
      AND NOT EXISTS (SELECT FROM free WHERE free.id = lease.id))
