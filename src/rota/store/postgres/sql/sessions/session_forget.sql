-- Remove ended sessions and their signs of life. Their leases are gone already.
WITH heartbeat AS (
    DELETE FROM rota.heartbeat WHERE session = ANY (%(sessions)s::int8[])
)
DELETE FROM rota.session WHERE id = ANY (%(sessions)s::int8[])
