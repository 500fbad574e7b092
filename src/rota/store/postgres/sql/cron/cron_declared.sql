-- What the code said last of these entries. Locks nothing.
SELECT name, declaration FROM rota.cron_entry WHERE name = ANY (%(names)s::text[])
ORDER BY name
