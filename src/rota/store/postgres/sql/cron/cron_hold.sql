-- Lock entries to change them; gives what the code said of each last. Waits for a worker that is
-- making their jobs, which takes milliseconds. In the order of names, so that two workers that
-- start at once cannot wait for each other.
SELECT name, declaration FROM rota.cron_entry WHERE name = ANY (%(names)s::text[])
ORDER BY name
FOR NO KEY UPDATE
