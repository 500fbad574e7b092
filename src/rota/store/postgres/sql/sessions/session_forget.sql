-- Remove ended sessions and those of their signs of life that heartbeat_trim.sql has left. Their
-- leases are gone already.
WITH heartbeat AS (
    DELETE FROM rota.heartbeat
    WHERE session = ANY (%(sessions)s::int8[])
      AND at >= (SELECT to_timestamp(last_value) FROM rota.heartbeat_trimmed)
)
DELETE FROM rota.session WHERE id = ANY (%(sessions)s::int8[])
