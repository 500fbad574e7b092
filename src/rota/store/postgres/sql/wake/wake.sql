-- Wake every sleeping worker: something came back to the log. Rare, never on settle.
SELECT pg_notify('rota', '')
