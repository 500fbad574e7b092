-- A probe that listeners on this channel can tell from all others.
SELECT pg_notify('rota_doctor', %(payload)s)
